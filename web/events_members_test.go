package web_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/internal/cluster"
	"github.com/gozkd/gozkd/internal/testkit/exhaustive"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server"
	"github.com/gozkd/gozkd/web"
)

// flow is a stream of events without a socket, for virtual time.
type flow struct {
	cancel context.CancelFunc
	ended  chan struct{} // closed when the handler has returned
	begun  chan struct{} // closed when the stream has begun
	begin  sync.Once
	header http.Header

	mu   sync.Mutex
	text strings.Builder
}

func (f *flow) Header() http.Header              { return f.header }
func (f *flow) Flush()                           { f.begin.Do(func() { close(f.begun) }) }
func (f *flow) SetWriteDeadline(time.Time) error { return nil }
func (f *flow) WriteHeader(int)                  {} // if the stream does not begin
func (f *flow) Write(b []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.text.Write(b)
}

// superuser is admin's password as a header, and superDigest as a key.
const superuser, superDigest = "digest super:admin", "super:xQJmxLMiHGwaqBvst5y6rkB6HQs="

// trio is an ensemble with pages, in virtual time, and the events that a reader of all its streams
// should get.
type trio struct {
	t       *testing.T
	c       *cluster.Cluster
	pages   map[int]*web.Handler
	writer  *client.Client
	flow    *flow
	id      string // that the reader has seen last
	got     []string
	want    []string
	written int
	done    int // events of flow that the reader has taken, in bytes
}

// open opens the stream of events on a member, as of the last id.
func (e *trio) open(member int) {
	e.cut()
	for e.flow == nil {
		if e.pages[member] == nil {
			m, err := e.c.Member(member)
			if err != nil {
				e.t.Fatal(err)
			}
			e.pages[member] = web.New(m.Server(), web.Options{})
		}
		r, err := http.NewRequestWithContext(e.t.Context(), http.MethodGet, "http://127.0.0.1/znodes/v2/w?watch=recursive", nil)
		if err != nil {
			e.t.Fatal(err)
		}
		r.RemoteAddr = "192.0.2.1:1000"
		r.Header.Set("Authorization", superuser)
		if e.id != "" {
			r.Header.Set("Last-Event-ID", e.id)
		}
		f, h := &flow{ended: make(chan struct{}), begun: make(chan struct{}), header: make(http.Header)}, e.pages[member]
		ctx, cancel := context.WithCancel(r.Context())
		f.cancel = cancel
		// Ends with cancel or the server; cut waits for it.
		go func() {
			defer close(f.ended)
			h.ServeHTTP(f, r.WithContext(ctx))
		}()
		e.flow, e.done = f, 0
		select {
		case <-f.begun:
		case <-f.ended: // there is no leader yet, for example
			e.cut()
			time.Sleep(100 * time.Millisecond)
		}
	}
}

// take reads at most n blocks that have come.
func (e *trio) take(n int) {
	synctest.Wait()
	e.flow.mu.Lock()
	defer e.flow.mu.Unlock()
	for ; n > 0; n-- {
		block, _, whole := strings.Cut(e.flow.text.String()[e.done:], "\n\n")
		if !whole {
			return
		}
		e.done += len(block) + 2
		event := ""
		for line := range strings.Lines(block) {
			switch name, value, _ := strings.Cut(strings.TrimSpace(line), ": "); name {
			case "id":
				e.id = value
			case "event":
				event = value
			case "data":
				_, path, _ := strings.Cut(value, `"path":"`)
				path, _, _ = strings.Cut(path, `"`)
				event += " " + path
			}
		}
		if event != "" {
			e.got = append(e.got, event)
		}
	}
}

// cut ends the stream. The reader does not see what it did not take.
func (e *trio) cut() {
	if e.flow != nil {
		e.flow.cancel()
		<-e.flow.ended
		e.flow = nil
	}
}

// write makes a change of one or three znodes, which happens once.
func (e *trio) write(three bool) {
	e.written++
	paths := []string{fmt.Sprint("/w/", e.written)}
	ops := []client.Op{client.CreateOp(paths[0], nil, client.CreateOptions{})}
	if three {
		for _, name := range []string{"/a", "/b"} {
			paths = append(paths, paths[0]+name)
			ops = append(ops, client.CreateOp(paths[0]+name, nil, client.CreateOptions{}))
		}
	}
	for {
		_, err := e.writer.Multi(e.t.Context(), ops...)
		if err == nil || errors.Is(err, proto.ErrNodeExists) { // the reply to the first attempt was lost
			break
		}
		if !errors.Is(err, proto.ErrConnectionLoss) {
			e.t.Fatal(err)
		}
	}
	for _, path := range paths {
		e.want = append(e.want, "created "+path)
	}
}

// restart stops or kills a member and starts it again.
func (e *trio) restart(m *cluster.Member, kill bool) {
	if h := e.pages[m.ID()]; h != nil {
		h.Close()
		delete(e.pages, m.ID())
	}
	end := m.Stop
	if kill {
		end = m.Kill
	}
	if err := errors.Join(end(), m.Start(e.t.Context())); err != nil {
		e.t.Fatal(err)
	}
}

// A reader whose stream is cut at any event, and continues on any member, also after restarts and
// elections, gets each event once and in order (W7).
func TestEvents_OnAnyMember(t *testing.T) {
	exhaustive.Checks(t, 6, 100) // half a second of work each
	rapid.Check(t, func(rt *rapid.T) {
		type step struct{ Do, Member, Take int }
		plan := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) step {
			return step{rapid.IntRange(0, 9).Draw(rt, "do"), rapid.IntRange(1, 3).Draw(rt, "member"), rapid.IntRange(0, 6).Draw(rt, "take")}
		}), 1, 12).Draw(rt, "plan")
		var got, want []string
		synctest.Test(t, func(t *testing.T) {
			c, err := cluster.Start(t.Context(), cluster.Config{Members: 3, InMemory: true, Dir: t.TempDir(), Server: server.Config{SuperDigest: superDigest}})
			if err != nil {
				t.Fatal(err)
			}
			e := &trio{t: t, c: c, pages: make(map[int]*web.Handler)}
			defer func() {
				e.cut()
				for _, h := range e.pages {
					h.Close()
				}
				if err := errors.Join(e.writer.Close(), c.Close()); err != nil {
					t.Error(err)
				}
			}()
			e.writer, err = client.Connect(t.Context(), client.Config{Servers: strings.Split(c.ConnectString(), ","), Dial: c.Dial})
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := e.writer.Create(t.Context(), "/w", nil, client.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			e.open(1)
			e.take(1) // the id at which it begins
			for _, s := range plan {
				m, err := c.Member(s.Member)
				if err != nil {
					t.Fatal(err)
				}
				switch s.Do {
				case 0, 1, 2, 3:
					e.write(s.Do%2 == 0)
				case 4, 5:
					e.take(s.Take)
					e.open(s.Member)
				case 6: // the connection within the process
					m.Server().ShedConnections(100)
				case 7, 8:
					e.restart(m, s.Do == 7)
				case 9:
					if m, err = c.Leader(t.Context()); err != nil {
						t.Fatal(err)
					}
					e.restart(m, s.Take%2 == 0)
				}
			}
			e.write(true)
			e.take(len(e.want) / 2)
			e.open(plan[0].Member)
			time.Sleep(time.Minute) // signs of life, too
			e.take(1000)
			got, want = e.got, e.want
		})
		if !slices.Equal(got, want) {
			rt.Fatalf("got %q\nwant %q", got, want)
		}
	})
}
