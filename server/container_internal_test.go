package server

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/proto"
)

// A container that was deleted and created again since the leader has decided to delete it stays.
func TestContainer_CreatedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startInProcess(t, Config{})
		c := connectTo(t, s)
		renew := func(path string, o client.CreateOptions) {
			t.Helper()
			if _, _, err := c.Create(t.Context(), path, nil, o); err != nil {
				t.Fatal(err)
			}
		}
		for _, again := range []bool{true, false} {
			renew("/c", client.CreateOptions{Container: true})
			renew("/c/x", client.CreateOptions{})
			if err := c.Delete(t.Context(), "/c/x", -1); err != nil {
				t.Fatal(err)
			}
			decided := s.sessions.collectable(time.Now(), 10)
			if again {
				if err := c.Delete(t.Context(), "/c", -1); err != nil {
					t.Fatal(err)
				}
				renew("/c", client.CreateOptions{Container: true})
			}
			code, want := proto.OK, proto.OK
			if again {
				want = proto.ErrBadVersion
			}
			if err := s.sessions.decide(t.Context(), decided, func(r *datatree.Result) { code = r.Err }); err != nil || len(decided) != 1 || code != want {
				t.Errorf("created again %v: %d deletions decided, result %v, %v, want %v", again, len(decided), code, err, want)
			}
			if again {
				_ = c.Delete(t.Context(), "/c", -1) // the next round creates it
			}
		}
	})
}
