package recipes_test

import (
	"bytes"
	"context"
	"errors"
	"log"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/server/facts"
	"github.com/gozkd/gozkd/zktest"
)

// TestObserve: the hooks see a call with its ctx, its repeats and its error, and each connection
// after the first, in the same session and in the next.
func TestObserve(t *testing.T) {
	for _, kind := range recipetest.Kinds() {
		t.Run(string(kind), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := zktest.Start(t)
				type key struct{}
				var begun, ended, repeated, failed, reconnects atomic.Int64
				c := recipetest.Open(t, kind, s.Service, 10*time.Second, recipes.Observe(client.Hooks{
					Request: func(ctx context.Context, op, path string) func(int, error) {
						if ctx.Value(key{}) == nil {
							return nil
						}
						if op != "get" || path != "/x" {
							t.Errorf("%s %s", op, path)
						}
						begun.Add(1)
						return func(repeats int, err error) {
							ended.Add(1)
							repeated.Add(int64(repeats))
							if errors.Is(err, proto.ErrNoNode) {
								failed.Add(1)
							}
						}
					},
					Reconnect: func(server string) {
						if server != s.ConnectString() {
							t.Errorf("reconnected to %q, want %q", server, s.ConnectString())
						}
						reconnects.Add(1)
					},
				}))
				ctx := context.WithValue(t.Context(), key{}, true)
				expect := func(what string, want, wantRepeats, wantReconnects int64) {
					t.Helper()
					_, _, _ = c.Get(ctx, "/x")
					if begun.Load() != want || ended.Load() != want || failed.Load() != want || repeated.Load() != wantRepeats {
						t.Errorf("%s: %d begun, %d ended, %d without a znode, %d repeats; want %d and %d", what, begun.Load(), ended.Load(), failed.Load(), repeated.Load(), want, wantRepeats)
					}
					synctest.Wait() // Wrap learns of a reconnect by an event
					if n := reconnects.Load(); n != wantReconnects {
						t.Errorf("%s: %d reconnects, want %d", what, n, wantReconnects)
					}
				}
				expect("connected", 1, 0, 0)
				s.DropReply(zktest.Get)
				expect("reply lost", 2, 1, 1)
				lost := c.Session().Context()
				s.ExpireSession(c.Session().ID())
				<-lost.Done()
				if _, err := c.AwaitSession(ctx); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				expect("session expired", 3, 1, 2)
			})
		})
	}
}

// TestSlog: the loss of a connection is a warning, and its lines are words with spaces between them
// on a Printf logger, too.
func TestSlog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := zktest.Start(t)
		var leveled, plain bytes.Buffer
		lose := func(opt recipes.Option) {
			c := recipetest.Open(t, recipetest.Connect, s.Service, 10*time.Second, opt)
			s.DropReply(zktest.Get)
			_, _, _ = c.Get(t.Context(), "/x")
			_ = c.Close()
		}
		lose(recipes.Slog(slog.New(slog.NewTextHandler(&leveled, nil))))
		lose(recipes.Logger(log.New(&plain, "", 0)))
		server := s.ConnectString()
		for _, line := range []string{`level=WARN msg="connection lost" server=` + server, `level=WARN msg="state suspended"`, `level=INFO msg="state reconnected"`} {
			if !strings.Contains(leveled.String(), line) {
				t.Errorf("no line %q in\n%s", line, leveled.String())
			}
		}
		for _, line := range []string{"state connected\n", "connection lost server=" + server + " error=", "state suspended\n"} {
			if !strings.Contains(plain.String(), line) {
				t.Errorf("no line %q in\n%s", line, plain.String())
			}
		}
	})
}

// TestStory: the cause of the end of a Session has the reason that the servers give. A session that
// has ended by its own clock has no such cause, and the reason is logged.
func TestStory(t *testing.T) {
	recipetest.Run(t, 3, func(t testing.TB, w *recipetest.World) {
		var lines bytes.Buffer
		c := w.Client(recipes.Slog(slog.New(slog.NewTextHandler(&lines, nil))))
		for _, story := range []struct {
			end   func()
			cause facts.Cause // "": none
		}{
			{func() { w.ExpireSession(c.Session().ID()) }, facts.Administrator},
			{func() {
				w.Unplug(c)
				time.Sleep(time.Minute)
				w.Plug(c)
			}, ""},
		} {
			ended := c.Session().Context()
			story.end()
			<-ended.Done()
			if _, err := c.AwaitSession(t.Context()); err != nil {
				t.Fatal(err)
			}
			var told client.ExpiredError
			if e := (*client.ExpiredError)(nil); errors.As(context.Cause(ended), &e) {
				told = *e
			}
			if told.Cause != story.cause || !errors.Is(context.Cause(ended), recipes.ErrSessionLost) {
				t.Errorf("cause %v, want %q", context.Cause(ended), story.cause)
			}
		}
		_ = c.Close()
		for _, line := range []string{"an administrator, or the embedding program, ended it", "and the client did not come back"} {
			if n := strings.Count(lines.String(), line); n != 1 {
				t.Errorf("%d lines with %q, want 1, in\n%s", n, line, lines.String())
			}
		}
	})
}
