// Package adminclient sends admin commands over HTTP, with the caller's right to run them.
package adminclient

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/admintoken"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/cli"
	"github.com/gozkd/gozkd/internal/neterr"
)

// nobody is a user that no ACL names. The admin endpoint requires a user in each request.
const nobody = "digest nobody:nobody"

// Authorization returns the Authorization header for an admin endpoint: that of the file or, on
// this machine, the token of the server that serve would run here with these arguments.
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
		return "", errors.New("the admin endpoint is no URL")
	}
	if Host(u) != "localhost" {
		return nobody, nil
	}
	s, err := env.Server(nil, append([]string{"serve"}, serve...))
	if err != nil { // then there is no such server
		return nobody, nil
	}
	for _, path := range []string{s.TokenFile, admintoken.Path(s.Dir)} {
		if token, _, err := admintoken.Read(path); err == nil {
			return "Bearer " + token, nil
		}
	}
	return nobody, nil
}

// Host returns the host of an endpoint: localhost for each name of this machine.
func Host(endpoint *url.URL) string {
	host := endpoint.Hostname()
	if ip, err := netip.ParseAddr(host); err == nil && ip.Unmap().IsLoopback() {
		return "localhost"
	}
	return host
}

// Security is how to connect by TLS, and to explain an error: a clientflags.Security.
type Security interface {
	Transport(t *http.Transport, host string)
	ExplainHTTP(ctx context.Context, u *url.URL, err error) error
}

// Send sends a request, whose URL is that of an admin command, and returns the answer, whose body
// the caller must close. The answer must begin within patience. A command may take long, so the
// server must first answer a simpler request within neterr.FirstAnswer.
func Send(
	req *http.Request, authorization string, patience time.Duration, security Security,
) (*http.Response, error) {
	req.Header.Set("Authorization", authorization)
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.ResponseHeaderTimeout, transport.DisableKeepAlives = patience, true
	security.Transport(transport, req.URL.Hostname())
	const silent = neterr.NoAnswer(neterr.FirstAnswer)
	ctx, cancel := context.WithTimeoutCause(req.Context(), neterr.FirstAnswer, silent)
	defer cancel()
	root := &url.URL{Scheme: req.URL.Scheme, Host: req.URL.Host, Path: "/"}
	first := &http.Request{Method: http.MethodHead, URL: root, Header: http.Header{}}
	resp, err := transport.RoundTrip(first.WithContext(ctx))
	if err = neterr.Ended(ctx, err); err == nil {
		_ = resp.Body.Close() // any answer will do
		resp, err = transport.RoundTrip(req)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", where(req.URL), security.ExplainHTTP(req.Context(), req.URL, err))
	}
	if isForeign(resp) {
		return nil, errors.Join(fmt.Errorf("%s: %s, but not from an admin server: name its port (admin.serverPort, 8080), "+
			"not that of metrics, with the path of its admin.commandURL", where(req.URL), resp.Status), resp.Body.Close())
	}
	return resp, nil
}

// isForeign reports whether an answer does not come from an admin server, which answers in JSON or,
// before it looks for the command, refuses in plain text. The body is of no use to the caller then.
func isForeign(resp *http.Response) bool {
	kind, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";")
	switch kind {
	case "application/json", "application/octet-stream":
		return false
	case "text/html":
		return true
	}
	return resp.StatusCode == http.StatusOK || resp.StatusCode == http.StatusNotFound
}

// where returns the URL of a request for an error: without user info and parameters.
func where(u *url.URL) string {
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// WithRemedy adds the remedy to an error of Send if no server was reached: flag names the endpoint.
func WithRemedy(err error, flag string) error {
	if op := (*net.OpError)(nil); errors.As(err, &op) && op.Op == "dial" {
		return fmt.Errorf("%w; use %s to name the admin endpoint of a server that runs", err, flag)
	}
	return err
}

// Refusal returns the error of an answer that refuses the request with this text.
func Refusal(resp *http.Response, text []byte, authorization string) error {
	hint, status := "", resp.Status+": "
	switch {
	case resp.StatusCode == http.StatusOK: // as ZooKeeper refuses
		if status = ""; strings.HasPrefix(Failure(text), "Unknown command") {
			hint = "; " + where(resp.Request.URL.JoinPath("..")) + " lists the commands"
		}
	case bytes.Contains(text, []byte("HTTP request to an HTTPS server")): // says net/http
		hint = " Use https://"
	case authorization != nobody:
	case resp.StatusCode == http.StatusUnauthorized, resp.StatusCode == http.StatusForbidden:
		hint = "; use --auth-file to name the superuser or a token"
	}
	reason := cmp.Or(Failure(text), strings.Join(strings.Fields(string(text)), " "))
	return fmt.Errorf("%s: %s%s%s", where(resp.Request.URL), status, reason, hint)
}

// Failure returns the error and the reason in an answer, or "" if there is no error in it.
func Failure(answer []byte) string {
	var says struct{ Error, Reason string }
	if json.Unmarshal(answer, &says) != nil || says.Error == "" {
		return ""
	}
	text := strings.TrimSuffix(says.Error+": "+strings.TrimPrefix(says.Reason, "server: "), ": ")
	if strings.HasSuffix(says.Error, "is not currently serving requests") {
		text += "; ask another member: gozkd status says which of them serve"
	}
	return text
}
