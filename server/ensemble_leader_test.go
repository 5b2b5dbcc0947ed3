package server_test

import (
	"fmt"
	"testing"
	"time"
)

// pipes starts a pipeline on each of the members.
func (e *ensemble) pipes(ids ...int) (all []*pipeline) {
	e.t.Helper()
	for _, id := range ids {
		all = append(all, e.pipe(id, fmt.Sprintf("/p%d", id)))
	}
	return all
}

func TestEnsemble_LeaderStops(t *testing.T) {
	withEnsemble(t, 3, func(t *testing.T, e *ensemble) {
		e.startAll()
		leader, pipes := e.leader(), e.pipes(e.followers()...)
		for range 3 {
			for _, p := range pipes {
				p.run(time.Second)
			}
		}
		e.m(leader).stop()
		time.Sleep(time.Second)
		for _, p := range pipes {
			p.stop()
			if p.slowest > 100*time.Millisecond {
				t.Errorf("%s: a lead that was handed over cost %v", p.path, p.slowest)
			}
		}
	})
}

func TestEnsemble_LeaderDies(t *testing.T) {
	withEnsemble(t, 3, func(t *testing.T, e *ensemble) {
		e.startAll()
		leader, pipes := e.leader(), e.pipes(e.followers()...)
		time.Sleep(time.Second)
		e.m(leader).kill()
		time.Sleep(2 * time.Second)
		for _, p := range pipes {
			p.stop()
		}
	})
}

func TestEnsemble_LeaderCutOff(t *testing.T) {
	withEnsemble(t, 3, func(t *testing.T, e *ensemble) {
		e.startAll()
		leader, pipes := e.leader(), e.pipes(e.followers()...)
		time.Sleep(time.Second)
		e.m(leader).isolate(true)
		time.Sleep(10 * time.Second)
		e.m(leader).isolate(false)
		time.Sleep(10 * time.Second)
		e.leader()
		for _, p := range pipes {
			p.stop()
		}
	})
}
