package web_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/gozkd/gozkd/server"
	"github.com/gozkd/gozkd/web"
)

const octets = "Content-Type: application/octet-stream"

// TestV1_README runs the examples of zookeeper-contrib-rest/README.txt, in its order where it can.
func TestV1_README(t *testing.T) {
	s := open(t, server.Config{}, web.Options{Anonymous: web.Write})
	s.want(200, `"path":"/"`, "GET", "/znodes/v1/", "")
	s.want(200, `"child_uri_template":"`+s.url+`/znodes/v1/{child}","children":["zookeeper"]`, "GET", "/znodes/v1/?view=children", "")
	s.want(201, `{"path":"/cluster2","uri":"`+s.url+`/znodes/v1/cluster2"}`, "POST", "/znodes/v1/?op=create&name=cluster2&dataformat=utf8", "data1", octets)
	s.want(201, `"/cluster2/leader"`, "POST", "/znodes/v1/cluster2?op=create&name=leader&dataformat=utf8", "data2", octets)
	s.want(200, `"encoding":"utf8","data":"data2","dataUtf8":"data2"`, "GET", "/znodes/v1/cluster2/leader?dataformat=utf8", "")
	s.want(200, `"encoding":"base64","data":"ZGF0YTI=","data64":"ZGF0YTI="`, "GET", "/znodes/v1/cluster2/leader", "")
	s.want(200, `"version":1`, "PUT", "/znodes/v1/cluster2/leader?dataformat=utf8", "data3") // curl -T sends no type
	asXML := "Accept: application/xml"
	s.want(200, `<?xml version="1.0" encoding="UTF-8" standalone="yes"?><stat><path>/cluster2/leader</path><uri>`+s.url+
		`/znodes/v1/cluster2/leader</uri><data64>ZGF0YTM=</data64><czxid>`, "GET", "/znodes/v1/cluster2/leader", "", asXML)
	s.want(200, `<dataUtf8>data3</dataUtf8>`, "GET", "/znodes/v1/cluster2/leader?dataformat=utf8", "", asXML)
	s.want(200, `/znodes/v1/cluster2/{child}</child_uri_template><children><child>leader</child></children></child>`, "GET", "/znodes/v1/cluster2?view=children", "", asXML)
	s.want(201, `<path><path>/cluster2/&lt;b&gt;</path><uri>`, "POST", "/znodes/v1/cluster2?op=create&name=%3Cb%3E", "", octets, asXML)
	s.want(404, `<error><request>GET /znodes/v1/none</request><message>`, "GET", "/znodes/v1/none", "", asXML)
	s.want(201, `<session><id>`, "POST", "/sessions/v1/?op=create&expire=3600", "", octets, asXML)
	s.want(406, "JSONP", "GET", "/znodes/v1/cluster2/leader?callback=f", "", "Accept: application/javascript")
	session := decode[struct{ ID, URI string }](t, s.want(201, "", "POST", "/sessions/v1/?op=create&expire=3600", "", octets))
	if session.URI != s.url+"/sessions/v1/"+session.ID || len(session.ID) != 36 {
		t.Errorf("%+v", session)
	}
	s.want(201, "", "POST", "/znodes/v1/?op=create&name=e&ephemeral=true&session="+session.ID, "", octets)
	s.want(201, "", "POST", "/znodes/v2/?name=e2&mode=ephemeral&session="+session.ID, "")
	s.want(200, "", "PUT", "/sessions/v1/"+session.ID, "", octets)
	s.want(204, "", "DELETE", "/sessions/v1/"+session.ID, "", octets)
	for s.ask("HEAD", "/znodes/v1/e2", "").StatusCode != 404 { // the session ends in the background
		if t.Context().Err() != nil {
			t.Fatal("the ephemeral znode stays")
		}
	}
	s.want(404, "expired", "PUT", "/sessions/v1/"+session.ID, "", octets)
}

func TestV1_Statuses(t *testing.T) {
	s := open(t, server.Config{}, web.Options{Anonymous: web.Write, MaxBody: 100})
	s.want(201, "", "POST", "/znodes/v1/?op=create&name=a", "x", octets)
	s.want(201, "/a0000000001", "POST", "/znodes/v1/?op=create&name=a&sequence=true", "x", octets)
	s.want(201, "/b", "POST", "/znodes/v1/?op=create&name=b&null=true", "x", octets)
	s.want(201, "/b/c", "POST", "/znodes/v1/b?op=create&name=c", "x", octets)
	bytes := "Accept: application/octet-stream"
	for _, c := range []struct {
		status       int
		method, path string
		headers      []string
	}{
		{200, "HEAD", "/znodes/v1/a", nil},
		{204, "HEAD", "/znodes/v1/a", []string{bytes}},
		{404, "HEAD", "/znodes/v1/c", nil},
		{200, "GET", "/znodes/v1/a", []string{bytes}},
		{204, "GET", "/znodes/v1/b", []string{bytes}},
		{404, "GET", "/znodes/v1/c", nil},
		{400, "GET", "/znodes/v1/a?version=x", nil},
		{400, "GET", "/znodes/v1/a?dataformat=x", nil},
		{400, "GET", "/znodes/v1/a/", nil},
		{412, "PUT", "/znodes/v1/a?version=7", []string{octets}},
		{404, "PUT", "/znodes/v1/c", []string{octets}},
		{204, "PUT", "/znodes/v1/a?version=0", []string{octets, bytes}},
		{415, "PUT", "/znodes/v1/a", []string{"Content-Type: application/x-www-form-urlencoded"}},
		{409, "POST", "/znodes/v1/?op=create&name=a", []string{octets}},
		{409, "POST", "/znodes/v1/c?op=create&name=a", []string{octets}}, // no parent
		{400, "POST", "/znodes/v1/?op=destroy&name=a", []string{octets}},
		{400, "POST", "/znodes/v1/?op=create", []string{octets}},
		{400, "POST", "/znodes/v1/?op=create&name=e&ephemeral=true", []string{octets}},
		{401, "POST", "/znodes/v1/?op=create&name=e&ephemeral=true&session=x", []string{octets}},
		{400, "POST", "/sessions/v1?op=create&expire=x", []string{octets}},
		{400, "POST", "/sessions/v1?op=create&expire=3601", []string{octets}},
		{412, "DELETE", "/znodes/v1/a?version=7", nil},
		{400, "DELETE", "/znodes/v1/", nil},
		{409, "DELETE", "/znodes/v1/b", nil},
		{204, "DELETE", "/znodes/v1/a", nil},
		{501, "PATCH", "/znodes/v1/a", nil},
		{501, "GET", "/sessions/v1/", nil},
	} {
		s.want(c.status, "", c.method, c.path, "", c.headers...)
	}
	s.want(413, "", "PUT", "/znodes/v1/b", strings.Repeat("x", 101), octets)
	r := s.want(404, `{"request":"GET /znodes/v1/c","message":`, "GET", "/znodes/v1/c?dataformat=utf8", "")
	if !json.Valid([]byte(r.body)) {
		t.Error(r.body)
	}
	s.want(404, "GET /znodes/v1/c: ", "GET", "/znodes/v1/c", "", bytes)
}

// A session belongs to the identities that made it.
func TestV1_SessionsOfOthers(t *testing.T) {
	s := open(t, users(nil), web.Options{Anonymous: web.Write, Roles: roles(t, "write=sasl:bob")})
	session := decode[struct{ ID string }](t, s.want(201, "", "POST", "/sessions/v1?op=create&expire=3600", "", basic("bob", "secret")))
	s.want(404, "", "PUT", "/sessions/v1/"+session.ID, "")
	s.want(404, "", "DELETE", "/sessions/v1/"+session.ID, "")
	s.want(404, "", "POST", "/znodes/v2/?name=e&mode=ephemeral&session="+session.ID, "")
	s.want(200, "", "PUT", "/sessions/v1/"+session.ID, "", basic("bob", "secret"))
	s.want(401, "", "POST", "/sessions/v1?op=create&expire=3600", "", elsewhere)
	for range 63 {
		s.want(201, "", "POST", "/sessions/v1?op=create&expire=3600", "", basic("bob", "secret"))
	}
	s.want(429, "sessions", "POST", "/sessions/v1?op=create&expire=3600", "", basic("bob", "secret"))
}
