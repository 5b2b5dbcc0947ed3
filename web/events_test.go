package web_test

import (
	"bufio"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/server"
	"github.com/gozkd/gozkd/web"
)

// stream is an open stream of events.
type stream struct {
	t    *testing.T
	resp *http.Response
	in   *bufio.Scanner
	id   string // the latest
	// timed: the latest event says when it happened.
	timed bool
}

func (s *site) stream(path, lastID string, headers ...string) *stream {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.url+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	if lastID != "" {
		r.Header.Set("Last-Event-ID", lastID)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	resp, err := s.client.Do(r)
	if err != nil || resp.StatusCode != 200 {
		s.t.Fatalf("%v, %v", resp, err)
	}
	st := &stream{t: s.t, resp: resp, in: bufio.NewScanner(resp.Body)}
	s.t.Cleanup(st.close)
	return st
}

func (s *stream) close() { _ = s.resp.Body.Close() }

// next returns the next event as "name path", or after a block with an id alone "".
func (s *stream) next() (event string) {
	s.t.Helper()
	for s.in.Scan() {
		switch name, value, _ := strings.Cut(s.in.Text(), ": "); name {
		case "id":
			s.id = value
		case "event":
			event = value
		case "data":
			_, path, _ := strings.Cut(value, `"path":"`)
			path, _, _ = strings.Cut(path, `"`)
			event, s.timed = strings.TrimSpace(event+" "+path), strings.Contains(value, `"time":`)
		case "":
			return event
		}
	}
	s.t.Fatalf("the stream ended: %v", s.in.Err())
	return ""
}

func (s *stream) want(events ...string) {
	s.t.Helper()
	for _, want := range events {
		if got := s.next(); got != want {
			s.t.Fatalf("event %q, want %q", got, want)
		}
	}
}

func TestEvents(t *testing.T) {
	s := open(t, server.Config{}, web.Options{Anonymous: web.Write})
	a, below := s.stream("/znodes/v2/a?watch", ""), s.stream("/znodes/v2/?watch=recursive", "")
	a.want("")
	below.want("")
	s.want(201, "", "POST", "/znodes/v2/?name=a", "")
	s.want(201, "", "POST", "/znodes/v2/a?name=b", "")
	s.want(200, "", "PUT", "/znodes/v2/a", "x", "If-Match: *")
	s.want(204, "", "DELETE", "/znodes/v2/a/b", "", "If-Match: *")
	s.want(204, "", "DELETE", "/znodes/v2/a", "", "If-Match: *")
	a.want("created /a", "children /a", "changed /a", "children /a", "deleted /a")
	below.want("created /a", "created /a/b", "changed /a", "deleted /a/b", "deleted /a")
	s.want(400, "watch", "GET", "/znodes/v2/a?watch=x", "")
	s.want(400, "only one", "GET", "/znodes/v2/a?watch&acl", "")
}

// W7: a stream that continues misses nothing, or says so: if the history does not reach back, or if
// too much was missed.
func TestEvents_Continue(t *testing.T) {
	const all = "/znodes/v2/?watch=recursive"
	for _, kept := range []int64{2000, 1 << 20} {
		s := open(t, server.Config{WatchReplay: kept}, web.Options{Anonymous: web.Write})
		st := s.stream(all, "")
		st.want("")
		begin := st.id
		s.want(201, "", "POST", "/znodes/v2/?name=a", "")
		st.want("created /a")
		middle := st.id
		st.close()
		s.want(201, "", "POST", "/znodes/v2/?name=b", "")
		s.want(201, "", "POST", "/znodes/v2/?name=c", "")
		missed := s.stream(all, middle)
		missed.want("created /b", "created /c")
		if !st.timed || missed.timed { // nobody knows when the missed ones happened
			t.Errorf("events with a time: %t, %t after a reader missed them", st.timed, missed.timed)
		}
		s.stream(all, begin).want("created /a", "created /b", "created /c")
		lost := s.stream(all, "0x1-1")
		lost.want("reset")
		again := s.stream(all, lost.id) // nothing was missed since
		s.want(201, "", "POST", "/znodes/v2/?name=d", "")
		again.want("created /d")
		lost.want("created /d")
		many := make(map[string][]byte)
		for i := range 4000 {
			many[fmt.Sprint("/", i)] = nil
		}
		if err := s.s.Load(t.Context(), many); err != nil {
			t.Fatal(err)
		}
		s.stream(all, middle).want("reset")
	}
}

// A stream begins while events come to others of the same znodes. The race detector fails without a
// lock.
func TestEvents_BeginMeanwhile(t *testing.T) {
	s := open(t, server.Config{}, web.Options{Anonymous: web.Write})
	first := s.stream("/znodes/v2/?watch=recursive", "")
	first.want("")
	var others sync.WaitGroup
	others.Go(func() {
		for i := range 100 {
			s.want(201, "", "POST", fmt.Sprintf("/znodes/v2/?name=a%d", i), "")
		}
	})
	for range 50 {
		st := s.stream("/znodes/v2/?watch=recursive", first.id)
		if event := st.next(); event == "reset" {
			t.Error(event)
		}
		st.close()
	}
	others.Wait()
}

// A stream whose connection to the server breaks goes on, with reset only if events may be missing.
func TestEvents_ResetIfMissed(t *testing.T) {
	for bytes, want := range map[int64]string{1 << 20: "created /a", -1: "reset"} {
		s := open(t, server.Config{WatchReplay: bytes}, web.Options{Anonymous: web.Write})
		st := s.stream("/znodes/v2/?watch=recursive", "")
		st.want("")
		if s.s.ShedConnections(100) == 0 {
			t.Fatal("there was no connection")
		}
		s.create(s.connect(), client.CreateOptions{}, "/a")
		st.want(want)
	}
}

// A stream ends with the session that its watch belongs to.
func TestEvents_EndOfServer(t *testing.T) {
	s := open(t, server.Config{}, web.Options{Anonymous: web.Write})
	st := s.stream("/znodes/v2/?watch=recursive", "")
	st.want("")
	s.h.Close()
	if st.in.Scan() {
		t.Errorf("%q", st.in.Text())
	}
	s.want(503, "being stopped", "GET", "/znodes/v2/", "")
}
