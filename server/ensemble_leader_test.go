package server_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/exhaustive"
	"github.com/gozkd/gozkd/server"
)

// pipes starts a pipeline on each of the members.
func (e *ensemble) pipes(ids ...int) (all []*pipeline) {
	e.t.Helper()
	for _, id := range ids {
		e.pipesMade++
		all = append(all, e.pipe(id, fmt.Sprintf("/p%d-%d", e.pipesMade, id)))
	}
	return all
}

// ends stops the pipelines. None of them may have stalled for longer than the limit.
func ends(t *testing.T, pipes []*pipeline, longest time.Duration) {
	t.Helper()
	for _, p := range pipes {
		p.stop()
		if p.slowest > longest {
			t.Errorf("%s: stalled for %v", p.path, p.slowest)
		}
	}
}

// A leader that is stopped hands over: no client notices.
func TestEnsemble_LeaderStops(t *testing.T) {
	withEnsemble(t, 3, func(t *testing.T, e *ensemble) {
		e.startAll()
		for range 3 {
			leader, pipes := e.leader(), e.pipes(e.followers()...)
			time.Sleep(time.Second)
			e.m(leader).stop()
			time.Sleep(time.Second)
			ends(t, pipes, max(pause+20*time.Millisecond, 60*time.Millisecond))
			e.start(leader)
			e.awaitVoters(1, 2, 3)
		}
	})
}

// The leader is killed repeatedly: the clients of the others keep their connections, and none of
// their writes is lost, doubled or out of order.
func TestEnsemble_LeaderDies(t *testing.T) {
	withEnsemble(t, 3, func(t *testing.T, e *ensemble) {
		e.onDisk()
		e.each(func(c *server.Config) { c.SnapCount = 5000 })
		e.startAll()
		for range 3 {
			leader, pipes := e.leader(), e.pipes(e.followers()...)
			time.Sleep(300 * time.Millisecond)
			e.m(leader).kill()
			time.Sleep(700 * time.Millisecond)
			e.start(leader)
			e.awaitVoters(1, 2, 3)
			time.Sleep(300 * time.Millisecond)
			ends(t, pipes, 500*time.Millisecond)
		}
	})
}

// In an ensemble of five, the leader and its successor are killed.
func TestEnsemble_FiveLoseTwo(t *testing.T) {
	withEnsemble(t, 5, func(t *testing.T, e *ensemble) {
		e.startAll()
		first := e.leader()
		var pipes []*pipeline
		for _, id := range e.followers() {
			if id != 2 { // the next leader, see core.elect
				pipes = append(pipes, e.pipes(id)...)
			}
		}
		time.Sleep(300 * time.Millisecond)
		e.m(first).kill()
		if next := e.leader(); next != 2 {
			t.Fatalf("member %d leads", next)
		}
		e.m(2).kill()
		time.Sleep(time.Second)
		ends(t, pipes, 500*time.Millisecond)
	})
}

// faults are network faults around one member that end before connections are closed for lack of a
// leader.
func TestEnsemble_ShortFaults(t *testing.T) {
	const lasts = 3 * time.Second
	for _, victim := range []string{"leader", "follower"} {
		for name, fault := range map[string]func(m *ensembleMember, on bool){
			"cut off":   (*ensembleMember).isolate,
			"mute":      (*ensembleMember).mute,
			"deaf":      (*ensembleMember).deafen,
			"paused":    (*ensembleMember).pause,
			"slow":      func(m *ensembleMember, on bool) { m.slow(on, 80*time.Millisecond) },
			"very slow": func(m *ensembleMember, on bool) { m.slow(on, 400*time.Millisecond) },
			"torn": func(m *ensembleMember, _ bool) {
				for _, other := range m.e.members {
					m.e.network.Tear(m.host(), other.host())
				}
			},
		} {
			sample := []string{"leader cut off", "leader paused", "follower torn"}
			if !exhaustive.Enabled() && !slices.Contains(sample, victim+" "+name) {
				continue
			}
			t.Run(victim+" "+name, func(t *testing.T) {
				withEnsemble(t, 3, func(t *testing.T, e *ensemble) {
					e.startAll()
					pipes := e.pipes(1, 2, 3) // also those of the victim
					id := e.leader()
					if victim == "follower" {
						id = e.followers()[0]
					}
					time.Sleep(500 * time.Millisecond)
					fault(e.m(id), true)
					time.Sleep(lasts)
					fault(e.m(id), false)
					time.Sleep(6 * time.Second) // the victim may need a new connection
					e.leader()
					ends(t, pipes, 10*time.Second)
				})
			})
		}
	}
}
