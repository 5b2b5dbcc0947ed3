package server_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server"
)

func joinOnly(cfg *server.Config) { cfg.JoinOnly = true }

// Servers 1 and 2 of three have the data; 3 was never started. Then 2 is down and 1 has lost its
// disk. 1 and 3 are a majority without data, but they form no empty ensemble, so the data is served
// again as soon as the disk is back.
func TestEnsemble_JoinOnlyKeepsAnEmptyMajorityFromForming(t *testing.T) {
	withEnsemble(t, 3, func(t *testing.T, e *ensemble) {
		e.onDisk()
		e.start(1, 2)
		e.check(1, 2, "/precious")
		e.m(1).stop()
		e.m(2).stop()
		e.each(joinOnly)
		kept := e.m(1).dir
		e.m(1).dir = t.TempDir()
		first, third := e.m(1).begin(e.lines()), e.m(3).begin(e.lines())
		for _, served := range []func() error{first, third} {
			if err := served(); !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("a majority without data: %v", err)
			}
		}
		e.m(1).stop()
		e.m(3).stop()
		e.m(1).dir = kept
		e.startAll()
		e.awaitVoters(1, 2, 3)
		r := e.connect(3, time.Minute)
		if h, _ := r.call(1, proto.OpExists, &proto.PathWatchRequest{Path: "/precious"}); h.Err != proto.OK {
			t.Error(h)
		}
	})
}

// A member that may only join does not count for those that form a new ensemble: they wait for
// initLimit, form it without that member, say so, and let it in.
func TestEnsemble_JoinOnlyMemberIsLetIn(t *testing.T) {
	withEnsemble(t, 3, func(t *testing.T, e *ensemble) {
		e.m(3).adapt = joinOnly
		e.startAll()
		if at := time.Since(e.begun); at < 10*time.Second || at > 15*time.Second {
			t.Errorf("two of three members formed the ensemble after %v, initLimit is 10 s", at)
		}
		e.awaitVoters(1, 2, 3)
		e.check(3, 1, "/a")
		if n := e.said.Count("not_heard=[3]"); n == 0 {
			t.Error("nobody says that member 3 took no part")
		}
	})
}
