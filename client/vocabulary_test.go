package client_test

import (
	"errors"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/gozk"
)

// TestOneVocabulary: for every code of a server, the errors of this package and of recipes, on its
// own connection and on one of go-zookeeper, are the code and the error that go-zookeeper returns
// for it.
func TestOneVocabulary(t *testing.T) {
	for code := proto.ErrThrottledOp; code < proto.OK; code++ {
		if !strings.Contains(code.String(), "(") { // not a code
			continue
		}
		t.Run(code.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fake{handshake: welcome, answer: polite(func(h proto.RequestHeader, _ []byte) []byte {
					if h.Op == proto.OpGetData {
						return reply(h.Xid, 1, code, nil)
					}
					return reply(h.Xid, 1, proto.OK, []byte("\x00\x00\x00\x01/")) // a sync
				})}
				dial := func(string, string, time.Duration) (net.Conn, error) { return f.Dial(t.Context(), "") }

				c, _ := connectFake(t, f)
				_, _, ours := c.Get(t.Context(), "/x", false)

				conn, events, err := zk.Connect([]string{"127.0.0.1:1"}, 9*time.Second, zk.WithDialer(dial), zk.WithLogInfo(false))
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(conn.Close)
				_, _, theirs := conn.Get("/x")
				all := map[string]error{"client": ours, "recipes.Connect": nil, "recipes.Wrap": nil}
				for kind := range all {
					var r *recipes.Client
					switch kind {
					case "client":
						continue
					case "recipes.Connect":
						r, err = recipes.Connect(t.Context(), []string{"fake:1"}, recipes.Dialer(dial), recipes.Retry(recipes.Times(0, 0)))
					default:
						r, err = recipes.Wrap(t.Context(), gozk.Conn(conn), events, 9*time.Second, recipes.Retry(recipes.Times(0, 0)))
					}
					if err != nil {
						t.Fatal(err)
					}
					_, _, all[kind] = r.Get(t.Context(), "/x")
					_ = r.Close() // the code may have ended the session
				}
				for kind, err := range all {
					if !errors.Is(err, code) {
						t.Errorf("%s: %v is not proto's %v", kind, err, code)
					}
					if !strings.HasPrefix(theirs.Error(), "unknown error") && !errors.Is(err, theirs) {
						t.Errorf("%s: %v is not go-zookeeper's %v", kind, err, theirs)
					}
				}
			})
		})
	}
}

// TestOneVocabulary_InvalidPath: what go-zookeeper refuses as an invalid path.
func TestOneVocabulary_InvalidPath(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := connectFake(t, &fake{answer: polite(nil)})
		if _, _, err := c.Get(t.Context(), "relative", false); !errors.Is(err, proto.ErrBadArguments) || !errors.Is(err, zk.ErrInvalidPath) {
			t.Errorf("an invalid path: %v", err)
		}
		if _, _, err := c.Get(t.Context(), "relative", false); errors.Is(err, zk.ErrNoNode) || errors.Is(err, zk.ErrUnknown) {
			t.Errorf("an invalid path is also: %v", err)
		}
		var e *client.Error
		if !errors.As(error(&client.Error{Code: proto.ErrNoNode}), &e) || errors.Is(e, proto.ErrNoAuth) || errors.Is(e, zk.ErrNoAuth) {
			t.Errorf("%v is another code's error, too", e)
		}
	})
}
