package server_test

import (
	"context"
	"errors"
	"iter"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozkd/gozkd/consensus"
	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server"
)

// strangeRequests returns requests that are random bytes, of unknown versions and operations, or
// valid with flipped bytes.
func strangeRequests(rng *rand.Rand) (requests [][]byte) {
	path := "/strange"
	for i := range 300 {
		r := datatree.Request{Op: proto.OpCode(rng.IntN(300) - 100), Body: make([]byte, rng.IntN(40))}
		if i%3 == 0 {
			r.Op, r.Body = proto.OpCreate, (&proto.CreateRequest{Path: path, ACL: proto.OpenACL()}).Append(nil, proto.OpCreate)
		}
		b := r.Append(nil)
		switch i % 4 {
		case 0:
			b[0] = byte(rng.Uint32()) // the version
		case 1:
			b = make([]byte, 1+rng.IntN(60))
			for j := range b {
				b[j] = byte(rng.Uint32())
			}
		case 2:
			for range 1 + rng.IntN(3) {
				b[rng.IntN(len(b))] = byte(rng.Uint32())
			}
		}
		requests = append(requests, b)
	}
	return requests
}

// Whatever members propose, all members apply it in the same way, and go on serving.
func TestEnsemble_UnknownRequests(t *testing.T) {
	withEnsemble(t, 3, func(t *testing.T, e *ensemble) {
		e.startAll()
		e.settle()
		rng := rand.New(rand.NewPCG(1, 1))
		for _, m := range e.members {
			for _, b := range strangeRequests(rng) {
				server.ProposeRaw(m.s, b)
			}
		}
		for _, m := range e.members { // the writes come after the other requests in each stream
			e.check(m.id, m.id%3+1, "/after-"+m.host())
		}
		states := map[string]bool{}
		for range 100 {
			clear(states)
			for _, m := range e.members {
				states[server.StateOf(m.s)] = true
			}
			if len(states) == 1 {
				return
			}
			time.Sleep(100 * time.Millisecond)
		}
		t.Errorf("the members have the states %v", states)
	})
}

// blind is a state machine that ignores its requests.
type blind struct{ consensus.StateMachine }

func (blind) Apply(batches []consensus.Batch) {
	for _, b := range batches {
		for _, r := range b.Requests {
			if last, ok := r.Ref.(chan struct{}); ok {
				close(last)
			}
		}
	}
}

func (blind) Restore(iter.Seq2[[]byte, []byte]) (func(), error) { return func() {}, nil }

// A log that holds unknown requests, of a version that did not validate them, opens, each time with
// the same state.
func TestUnknownRequests_InAnOldLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEnsemble(t, 1, newNetwork())
		e.onDisk()
		alone := func() {
			e.startWith(nil, e.m(1))
		}
		alone()
		c := e.connect(1, time.Hour)
		c.call(1, proto.OpCreate, create{path: "/kept"})
		e.m(1).stop()

		n, err := consensus.Open(consensus.Config{Dir: e.m(1).dir, StateMachine: blind{}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- n.Run(ctx) }() // stopped by cancel and awaited below
		for _, b := range strangeRequests(rand.New(rand.NewPCG(2, 2))) {
			n.Propose(b, nil)
		}
		last := make(chan struct{})
		n.Propose([]byte{0xff}, last)
		<-last
		cancel()
		if err := <-done; !errors.Is(err, consensus.ErrClosed) {
			t.Fatal(err)
		}

		digest := ""
		for range 2 {
			alone()
			_, again, _ := strings.Cut(server.StateOf(e.m(1).s), " ")
			if digest != "" && again != digest {
				t.Errorf("the digest is %s, and %s after another start", digest, again)
			}
			digest = again
			e.m(1).stop()
		}
		alone()
		if !e.connect(1, time.Hour).exists("/kept") {
			t.Error("the znode is lost")
		}
	})
}
