package client_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/proto"
)

// record is the lines of some hooks and of a Logger.
type record struct {
	mu    sync.Mutex
	lines []string
}

func (r *record) add(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, fmt.Sprintf(format, args...))
}

func (r *record) hooks() client.Hooks {
	return client.Hooks{
		Request: func(_ context.Context, op, path string) func(int, error) {
			r.add("%s %s", op, path)
			if op == "getACL" {
				return nil
			}
			return func(repeats int, err error) {
				code, e := proto.OK, (*client.Error)(nil)
				if errors.As(err, &e) {
					code = e.Code
				}
				r.add("%s %s ended, %d repeats: %s", op, path, repeats, code.String())
			}
		},
		Reconnect: func(server string) { r.add("reconnect %s", server) },
	}
}

// TestHooks: the hooks see the start and the end of each request, also of a multi that the server
// carried out in part, and a new connection, and the Logger gets a warning of the lost one.
func TestHooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r record
		var logged strings.Builder
		f := &fake{answer: polite(func(h proto.RequestHeader, _ []byte) []byte {
			switch h.Op {
			case proto.OpGetData:
				return reply(h.Xid, 1, proto.ErrNoNode, nil)
			case proto.OpMulti:
				b := (&proto.MultiResponse{Results: []proto.MultiResult{
					{Op: proto.OpError, Err: proto.OK}, {Op: proto.OpError, Err: proto.ErrBadVersion},
				}}).Append(nil)
				return reply(h.Xid, 1, proto.OK, b)
			case proto.OpSetACL:
				return reply(h.Xid, 1, proto.ErrNoAuth, nil)
			}
			return nil // lost
		})}
		c, _ := connectFake(t, f, func(cfg *client.Config) {
			cfg.Hooks = r.hooks()
			cfg.Logger = slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
				if a.Key == slog.TimeKey {
					return slog.Attr{}
				}
				return a
			}}))
		})
		ctx := t.Context()
		_, _, _ = c.Get(ctx, "/a", false)
		_, _ = c.Multi(ctx, client.CheckOp("/b", 1), client.CheckOp("/c", 1))
		_ = c.Delete(ctx, "/d", -1)
		_, _, _ = c.GetACL(ctx, "/e")
		_, _ = c.SetACL(ctx, "/f", nil, -1)
		synctest.Wait()
		want := []string{
			"getData /a", "getData /a ended, 0 repeats: no node (-101)",
			"multi ", "multi  ended, 0 repeats: bad version (-103)",
			"delete /d", "delete /d ended, 0 repeats: connection loss (-4)",
			"getACL /e", "setACL /f", "setACL /f ended, 0 repeats: no auth (-102)",
		}
		got := slices.DeleteFunc(slices.Clone(r.lines), func(s string) bool { return s == "reconnect fake:1" })
		if !slices.Equal(got, want) || len(r.lines) != len(want)+2 {
			t.Errorf("got %q, want %q and two reconnects", r.lines, want)
		}
		lost := "level=WARN msg=\"connection lost\" server=fake:1 error=\"the server closed the connection\"\nlevel=DEBUG msg=\"connected again\" server=fake:1\n"
		if logged.String() != lost+lost {
			t.Errorf("logged\n%swant twice\n%s", logged.String(), lost)
		}
	})
}
