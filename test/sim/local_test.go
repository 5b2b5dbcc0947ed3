package sim

import (
	"fmt"
	"net"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/rawclient"
	"github.com/gozkd/gozkd/proto"
)

// stayers is the number of clients that stay with a member, if sessions are local.
const stayers = 2

// tally counts requests that clients sent while a majority was well, and answers. A request may
// fail because of a fault; of many requests, few fail.
type tally struct{ asked, answered int }

// note notes a request, and whether it was answered. wasWell is what well returned before.
func (w *world) note(t *tally, wasWell, answered bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !wasWell {
		return
	}
	t.asked++
	if answered {
		t.answered++
	}
}

// judgeTally complains if nearly no request was answered. Nobody may note requests meanwhile.
func (w *world) judgeTally(what string, t *tally) {
	const enough, most = 12, 4 // out of most requests, one is answered even under faults
	if w.logs.Info("TALLY", "what", what, "asked", t.asked, "answered", t.answered); t.asked >= enough && most*t.answered < t.asked {
		w.complain("%d of %d %s were answered", t.answered, t.asked, what)
	}
}

// stay begins sessions, makes them global by an ephemeral znode, and comes back to the same member,
// until stop is closed. A member that goes on to treat such a session as a local one does not let
// the client come back, or tells nobody that it hears the client, whose session then expires early.
func (v *mover) stay(stop <-chan struct{}) {
	for {
		v.forget()
		v.tries++
		m, end := v.w.members[v.rng.IntN(len(v.w.members))], v.w.now()+between(v.rng, v.timeout, 2*v.timeout)
		for connections := 1; connections == 1 || v.id != 0 && v.w.now() < end; connections++ {
			wait := between(v.rng, 0, time.Second)
			if connections == 1 {
				rest := v.w.rest(v.rng)
				wait, end = wait+rest, end+rest
			}
			select {
			case <-stop:
				return
			case <-time.After(wait):
			}
			if c, err := v.dial(m); err == nil {
				v.stayWith(m, c, connections, end)
				_ = c.Close() // the session lives on
			}
		}
	}
}

// stayWith uses a connection of a session for a while.
func (v *mover) stayWith(m *member, c net.Conn, connections int, end time.Duration) {
	wasWell, isNew := v.w.well(), v.id == 0
	readOnly, ok := v.attach(c)
	if connections == 2 && v.path != "" {
		v.w.note(&v.w.returns, wasWell, ok)
	}
	if !ok || readOnly {
		return
	}
	xid := int32(1)
	if v.path == "" {
		path := fmt.Sprintf("/%s-%d", v.name, v.tries)
		if isNew && v.rng.IntN(4) == 0 {
			v.moveEarly(m, c, path)
			return
		}
		code, err := v.ask(c, xid, proto.OpCreate, ephemeral(path))
		if isNew {
			v.w.note(&v.w.upgrades, wasWell, err == nil)
		}
		if err != nil || code != proto.OK && code != proto.ErrNodeExists {
			return
		}
		v.path, v.answered = path, v.w.now()
	}
	for v.w.now() < end {
		xid++
		if err := v.look(c, xid, false); err != nil || isNew {
			return
		}
		time.Sleep(between(v.rng, 0, time.Second))
	}
}

// moveEarly asks for the session on another connection while it is about to become global.
func (v *mover) moveEarly(m *member, c net.Conn, path string) {
	if _, err := c.Write(rawclient.AppendRequest(nil, 1, proto.OpCreate, ephemeral(path))); err != nil {
		return
	}
	if again, err := v.dial(m); err == nil {
		_, _ = v.attach(again) // closed without an answer, or too late for that
		_ = again.Close()      // the session lives on
	}
}
