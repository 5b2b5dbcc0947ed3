package web_test

import (
	"testing"

	"github.com/gozkd/gozkd/server"
	"github.com/gozkd/gozkd/web"
)

// W6: a caller is bounded, others are not affected.
func TestBounds_Rate(t *testing.T) {
	s := open(t, users(nil), web.Options{Anonymous: web.Read, Roles: roles(t, "read=sasl:bob"), Rate: 0.001})
	busy := 0
	for range 3 {
		if r := s.ask("GET", "/znodes/v2/", ""); r.StatusCode == 429 && r.Header.Get("Retry-After") != "" {
			busy++
		}
	}
	if busy != 3 { // the bucket of 0.002 requests has none
		t.Errorf("%d of 3 requests were refused", busy)
	}
}

// Callers on this machine may send ten times as many requests.
func TestBounds_RateOnThisMachine(t *testing.T) {
	s := open(t, users(nil), web.Options{Anonymous: web.Read, Roles: roles(t, "read=sasl:bob"), Rate: 0.05})
	answered := func(headers ...string) (n int) {
		for range 9 {
			if r := s.ask("GET", "/identity/v2", "", headers...); r.StatusCode != 429 {
				n++
			}
		}
		return n
	}
	if n := answered("X-Forwarded-For: 192.0.2.1"); n != 0 { // a bucket of a tenth
		t.Errorf("%d of 9 requests of another machine were answered", n)
	}
	if n := answered(); n == 0 { // a bucket of one
		t.Errorf("%d of 9 requests of this machine were answered", n)
	}
}

func TestBounds_Stats(t *testing.T) {
	s := open(t, server.Config{}, web.Options{Anonymous: web.Write})
	s.stream("/znodes/v2/?watch", "").want("")
	s.want(201, "", "POST", "/sessions/v1?op=create&expire=3600", "")
	s.want(404, "", "GET", "/znodes/v2/a", "")
	s.want(404, "", "GET", "/<b>", "")
	st := s.h.Stats()
	if st.Streams != 1 || st.Sessions != 1 || st.Shared != 1 {
		t.Errorf("%+v", st)
	}
	for route, want := range map[web.Route]int64{{"/sessions/v1", "2xx"}: 1, {"/znodes/v2", "4xx"}: 1, {"other", "4xx"}: 1} {
		if st.Requests[route] != want {
			t.Errorf("%v: %d, want %d", route, st.Requests[route], want)
		}
	}
}
