package clientflags

import (
	"bufio"
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
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	t.Cleanup(func() { _ = l.Close(); all.Wait() })
	all.Go(func() { // ends when the listener is closed; awaited by the cleanup
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { pass(t, near) }) // ends with the connection; awaited by the cleanup
		}
	})
	return &url.URL{Scheme: "http", Host: l.Addr().String()}
}

// pass connects a caller with the server that it asks for.
func pass(t *testing.T, near net.Conn) {
	defer near.Close() //nolint:errcheck // the client notices
	r, err := http.ReadRequest(bufio.NewReader(near))
	if err != nil || r.Method != http.MethodConnect {
		return
	}
	far, err := new(net.Dialer).DialContext(t.Context(), "tcp", r.Host)
	if err != nil {
		return
	}
	_, _ = io.WriteString(near, "HTTP/1.1 200 OK\r\n\r\n") // the client notices
	var back sync.WaitGroup
	back.Go(func() { // ends with the connection to the server; awaited below
		_, _ = io.Copy(near, far)
		_ = near.Close()
	})
	_, _ = io.Copy(far, near)
	_ = far.Close()
	back.Wait()
}

// TestTransport_ThroughAProxy checks that what the flags demand holds for requests through a proxy,
// too: only the given authority is trusted, and the client's certificate is shown.
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
