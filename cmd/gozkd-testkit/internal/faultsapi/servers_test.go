package faultsapi_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/sasl"
)

// TestServers: servers that a request starts share nothing with others, have the same requests, and
// end with the request that closes them, or with the process.
func TestServers(t *testing.T) {
	w := start(t, 1)
	var one, three struct {
		ID      int
		Client  string
		Members []struct{ ID int }
		Faults  string
	}
	w.must("POST", "/servers", "", &one)
	w.must("POST", "/servers", `{"ensemble":3}`, &three)
	if len(one.Members) != 1 || len(three.Members) != 3 ||
		!strings.HasSuffix(three.Faults, fmt.Sprintf("/servers/%d", three.ID)) {
		t.Fatalf("%+v, %+v", one, three)
	}
	below := func(id int) string { return fmt.Sprintf("/servers/%d", id) }
	w.must("PUT", below(one.ID)+"/tree", `{"/one":null}`, nil)
	w.must("POST", below(three.ID)+"/members/2/kill", "", nil)
	for path, want := range map[string]string{
		"/tree":                   `{"/":""}`,
		below(three.ID) + "/tree": `{"/":""}`,
		below(one.ID) + "/tree":   `{"/":"","/one":null}`,
	} {
		if _, text := w.ask("GET", path, ""); strings.TrimSpace(text) != want {
			t.Errorf("GET %s: %s, want %s", path, text, want)
		}
	}
	var inner struct{ Faults string }
	w.must("POST", below(one.ID)+"/servers", "", &inner)
	if want := below(one.ID) + "/servers/1"; !strings.HasSuffix(inner.Faults, want) {
		t.Errorf("faults of a server below another: %s, want …%s", inner.Faults, want)
	}
	w.must("GET", below(one.ID)+"/servers/1/tree", "", nil)
	w.must("DELETE", below(one.ID), "", nil)
	for _, wrong := range []struct {
		method, path, body string
		status             int
	}{
		{"GET", below(one.ID) + "/tree", "", 404},
		{"DELETE", below(one.ID), "", 404},
		{"GET", "/servers/x/tree", "", 400},
		{"POST", "/servers", `{"ensemble":0}`, 400},
		{"POST", "/servers", `{"tick":"1"}`, 400},
		{"POST", "/servers", `{"tick":"1ns"}`, 400},
		{"POST", "/servers", `{"tick":"100h"}`, 400},
		{"POST", "/servers", `{"members":1}`, 400},
		{"POST", "/servers", `{"ports":[0,0]}`, 400},
		{"POST", "/servers", `{"ensemble":3,"dirs":["/tmp/a"]}`, 400},
		{"POST", "/servers", `{"config":{"NoSuchField":1}}`, 400},
		{"POST", below(three.ID) + "/certificate", `{"name":"alice"}`, 409},
	} {
		if status, text := w.ask(wrong.method, wrong.path, wrong.body); status != wrong.status {
			t.Errorf("%s %s %s: %d %s, want %d", wrong.method, wrong.path, wrong.body, status, text, wrong.status)
		}
	}
}

// TestServers_Options: servers have the ports, directories, certificates, users and configuration
// that they were asked for.
func TestServers_Options(t *testing.T) {
	w := start(t, 1)
	type servers struct {
		ID     int
		Client string
	}
	var first, second, down, secure, users servers
	dir := t.TempDir()
	of := func(s servers, path string) string { return fmt.Sprintf("/servers/%d%s", s.ID, path) }
	w.must("POST", "/servers", fmt.Sprintf(`{"dirs":[%q]}`, dir), &first)
	w.must("PUT", of(first, "/tree"), `{"/a":"1"}`, nil)
	if status, text := w.ask("POST", "/servers", fmt.Sprintf(`{"dirs":[%q]}`, dir)); status == 200 {
		t.Errorf("two servers share a directory: %s", text)
	}
	w.must("POST", of(first, "/members/1/kill"), "", nil)
	w.must("DELETE", of(first, ""), "", nil)
	_, port, _ := strings.Cut(first.Client, ":")
	w.must("POST", "/servers", fmt.Sprintf(`{"dirs":[%q],"ports":[%s]}`, dir, port), &second)
	if second.Client != first.Client {
		t.Errorf("%s, want the port of %s", second.Client, first.Client)
	}
	if _, text := w.ask("GET", of(second, "/tree"), ""); !strings.Contains(text, `"/a":"1"`) {
		t.Errorf("the data is %s", text)
	}

	// Members that start one after the other would wait for those without data, and longer than a
	// request may take.
	w.must("POST", "/servers", `{"ensemble":3,"down":true,"tick":"5s"}`, &down)
	var status struct{ Members []struct{ State string } }
	w.must("GET", of(down, "/status"), "", &status)
	if fmt.Sprint(status.Members) != "[{down} {down} {down}]" {
		t.Errorf("%+v", status.Members)
	}
	for range 2 {
		w.must("POST", of(down, "/start"), "", nil)
	}
	w.must("PUT", of(down, "/tree"), `{"/a":"1"}`, nil)
	w.must("POST", of(down, "/stop"), "", nil)
	w.must("GET", of(down, "/status"), "", &status)
	if fmt.Sprint(status.Members) != "[{down} {down} {down}]" {
		t.Errorf("after stop: %+v", status.Members)
	}

	var pem struct{ CA, Cert, Key string }
	w.must("POST", "/servers", `{"tls":true}`, &secure)
	w.must("POST", of(secure, "/certificate"), `{"name":"alice"}`, &pem)
	pair, err := tls.X509KeyPair([]byte(pem.Cert), []byte(pem.Key))
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(pem.CA))
	c, err := tls.Dial("tcp", secure.Client, &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair}})
	if err != nil {
		t.Fatal(err)
	}
	_ = c.Close() // nothing was sent
	if pair.Leaf.Subject.CommonName != "alice" {
		t.Errorf("the certificate is of %s", pair.Leaf.Subject)
	}

	w.must("POST", "/servers", `{"users":{"bob":"secret"},"config":{"MaxClientConns":10}}`, &users)
	for password, want := range map[string]bool{"secret": true, "wrong": false} {
		c, err := client.Connect(t.Context(), client.Config{Servers: []string{users.Client}, SASL: sasl.NewDigestClient("bob", password)})
		if (err == nil) != want {
			t.Errorf("%s: %v", password, err)
		}
		if err == nil {
			acl := []proto.ACL{{Perms: proto.PermAll, ID: proto.ID{Scheme: "sasl", ID: "bob"}}}
			_, _, err = c.Create(t.Context(), "/bob", nil, client.CreateOptions{ACL: acl})
			err = errors.Join(err, c.Close())
		}
		if want && err != nil {
			t.Error(err)
		}
	}
}
