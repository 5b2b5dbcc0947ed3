package clientflags

import (
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"

	"github.com/gozkd/gozkd/internal/testca"
)

// tunnel is a proxy of HTTP that knows only CONNECT.
func tunnel(t *testing.T) *url.URL {
	t.Helper()
	var copies sync.WaitGroup
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		far, err := new(net.Dialer).DialContext(r.Context(), "tcp", r.Host)
		if err != nil || r.Method != http.MethodConnect {
			http.Error(w, "not a tunnel", http.StatusBadGateway)
			return
		}
		near, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = io.WriteString(near, "HTTP/1.1 200 OK\r\n\r\n") // the client notices
		for from, to := range map[net.Conn]net.Conn{near: far, far: near} {
			copies.Go(func() { // ends with either connection; awaited by the cleanup
				_, _ = io.Copy(to, from)
				_, _ = near.Close(), far.Close()
			})
		}
	}))
	t.Cleanup(func() { s.Close(); copies.Wait() })
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// TestTransport_ThroughAProxy checks that what the flags demand holds for requests through a proxy, too:
// only the given authority is trusted, and the client's certificate is shown.
func TestTransport_ThroughAProxy(t *testing.T) {
	ca := testca.New(t, "root")
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.TLS.PeerCertificates[0].Subject.CommonName) // the client notices
	}))
	s.TLS = ca.Issue(t, testca.Spec{Hosts: []string{"127.0.0.1"}}).Server()
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // it would print the refusals
	s.StartTLS()
	t.Cleanup(s.Close)
	proxy := tunnel(t)
	client, others := ca.Issue(t, testca.Spec{CN: "alice"}).Files(t), testca.New(t, "others").Issue(t, testca.Spec{}).Files(t)
	ask := func(args ...string) (string, error) {
		t.Helper()
		security, err := resolve(args, nil)
		if err != nil {
			t.Fatal(err)
		}
		transport := &http.Transport{Proxy: http.ProxyURL(proxy)}
		defer transport.CloseIdleConnections()
		security.Transport(transport, "127.0.0.1")
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := transport.RoundTrip(req)
		if err != nil {
			return "", err
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close() // it was only read
		return string(body), err
	}
	if got, err := ask("--cacert", client.CA, "--cert", client.Cert, "--key", client.Bare); err != nil || got != "alice" {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := ask("--cacert", others.CA, "--cert", client.Cert, "--key", client.Bare); err == nil {
		t.Errorf("a server of another authority was asked: %q", got)
	}
	if got, err := ask("--cacert", client.CA, "--tls-server-name", "other", "--cert", client.Cert, "--key", client.Bare); err == nil {
		t.Errorf("a server of another name was asked: %q", got)
	}
}
