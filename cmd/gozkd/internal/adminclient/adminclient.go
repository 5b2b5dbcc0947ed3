// Package adminclient sends admin commands to a server over HTTP, with the caller's right to run
// them.
package adminclient

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/admintoken"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/cli"
)

// nobody is a user that no ACL names. The admin endpoint requires a user in each request.
const nobody = "digest nobody:nobody"

// Authorization returns the Authorization header for an admin endpoint: that of the file, or, for
// an endpoint on this machine, the token of the server that serve would run here with these
// arguments.
func Authorization(endpoint, file string, env cli.Env, serve ...string) (string, error) {
	if file != "" {
		text, err := os.ReadFile(file)
		header := strings.TrimSpace(string(text))
		if header != "" && !strings.Contains(header, " ") {
			header = "Bearer " + header
		}
		return header, err
	}
	u, err := url.Parse(endpoint)
	if err != nil {
		return "", err
	}
	if ip, err := netip.ParseAddr(u.Hostname()); u.Hostname() != "localhost" && (err != nil || !ip.Unmap().IsLoopback()) {
		return nobody, nil
	}
	s, err := env.Server(nil, append([]string{"serve"}, serve...))
	if err != nil { // then there is no such server
		return nobody, nil
	}
	for _, path := range []string{s.TokenFile, admintoken.Path(s.Dir)} {
		if token, err := admintoken.Read(path); err == nil {
			return "Bearer " + token, nil
		}
	}
	return nobody, nil
}

// Security is how to connect by TLS, and how to explain an error. It is implemented by
// clientflags.Security.
type Security interface {
	Transport(t *http.Transport, host string)
	ExplainHTTP(ctx context.Context, u *url.URL, err error) error
}

// Send sends a request, whose URL is that of an admin command, and returns the answer, whose body
// the caller must close. The first byte of the answer must come within patience.
func Send(req *http.Request, authorization string, patience time.Duration, security Security) (*http.Response, error) {
	req.Header.Set("Authorization", authorization)
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.ResponseHeaderTimeout, transport.DisableKeepAlives = patience, true
	security.Transport(transport, req.URL.Hostname())
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", req.URL, security.ExplainHTTP(req.Context(), req.URL, err))
	}
	return resp, nil
}

// WithRemedy adds the remedy to an error of Send if no server was reached: flag names the endpoint.
func WithRemedy(err error, flag string) error {
	if op := (*net.OpError)(nil); errors.As(err, &op) && op.Op == "dial" {
		return fmt.Errorf("%w; use %s to name the admin endpoint of a server that runs", err, flag)
	}
	return err
}

// Refusal returns the error of an answer whose status is not OK.
func Refusal(resp *http.Response, authorization string) error {
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 8<<10)) // an error does not matter: the status is enough
	hint := ""
	if authorization == nobody && (resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden) {
		hint = "; use --auth-file to name the superuser or a token"
	}
	if bytes.Contains(text, []byte("HTTP request to an HTTPS server")) { // says net/http
		hint = " Use https://"
	}
	reason := cmp.Or(Failure(text), strings.Join(strings.Fields(string(text)), " "))
	return fmt.Errorf("%s: %s: %s%s", resp.Request.URL, resp.Status, reason, hint)
}

// Failure returns the error and the reason in an answer, or "" if there is no error in it.
func Failure(answer []byte) string {
	var says struct{ Error, Reason string }
	if json.Unmarshal(answer, &says) != nil || says.Error == "" {
		return ""
	}
	return strings.TrimSuffix(says.Error+": "+says.Reason, ": ")
}
