package recipetest

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/zktest"
)

// Fault is what happens at a request.
type Fault string

// The faults of Steps.
const (
	EndBefore Fault = "ctx ends before" // the request, which is not sent
	EndAfter  Fault = "ctx ends after"  // it was carried out; nobody waits for the answer any more
	LoseReply Fault = "reply lost"      // it is carried out, and the connection breaks instead of an answer
	Cut       Fault = "connection cut"  // before it is sent
	Expire    Fault = "session expired" // before it is sent
	Kill      Fault = "member killed"   // the one that the client is connected to, before it is sent; it comes back after a moment
)

// Faults are all of them.
func Faults() []Fault { return []Fault{EndBefore, EndAfter, LoseReply, Cut, Expire, Kill} }

// Downtime is how long a member stays down that Kill kills.
const Downtime = 700 * time.Millisecond

// mostRequests is more than any scenario should make.
const mostRequests = 300

// Step is one run of a scenario, with a fault at one request.
type Step struct {
	*World
	Client *recipes.Client // the one that the fault is for; others come from World.Client
	Hooks  *Hooks          // of Client
	Ctx    context.Context // ends with the scenario, or by the fault
	Fault  Fault
	K      int // the request, from 1

	cancel        context.CancelFunc
	armed         bool
	faultHappened atomic.Bool
}

// Steps runs the scenario for each of the faults and each k, in a bubble and a world of its own, until the scenario has fewer
// than k requests. It gets a Client with a session, prepares what it needs, calls Arm, does with Ctx what is to be tested, and then checks
// what is left: after Settle, if it depends on what goes on in the background.
func Steps(t *testing.T, members int, faults []Fault, scenario func(t testing.TB, s *Step)) {
	t.Helper()
	for _, fault := range faults {
		t.Run(string(fault), func(t *testing.T) {
			for k, more := 1, true; more; k++ {
				if k > mostRequests {
					t.Fatalf("recipetest: more than %d requests", mostRequests)
				}
				more = false // if the run does not come to its end
				t.Run(fmt.Sprint(k), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { more = step(t, members, fault, k, scenario) })
				})
			}
		})
	}
}

// step reports whether there was a k-th request.
func step(t testing.TB, members int, fault Fault, k int, scenario func(t testing.TB, s *Step)) bool {
	s := &Step{World: NewWorld(t, members), Fault: fault, K: k}
	s.Client, s.Hooks = s.Hooked()
	s.Ctx, s.cancel = context.WithCancel(t.Context())
	defer s.cancel()
	scenario(t, s)
	if !s.armed {
		t.Fatal("recipetest: the scenario has not called Arm")
	}
	return s.FaultHappened()
}

// Arm says that requests of Client count from here on.
func (s *Step) Arm() {
	s.armed = true
	strike := func(r Request) {
		if r.N == s.K && s.faultHappened.CompareAndSwap(false, true) {
			s.injectFault(r)
		}
	}
	if s.Fault == EndAfter {
		s.Hooks.Arm(nil, strike)
		return
	}
	s.Hooks.Arm(func(r Request) error {
		strike(r)
		if s.Fault == EndBefore && r.N == s.K {
			return zk.ErrNoServer
		}
		return nil
	}, nil)
}

// Struck reports whether the fault has happened. Where it has not, the scenario ran as in a world without faults.
func (s *Step) FaultHappened() bool { return s.faultHappened.Load() }

// Settle waits until nothing that the fault has set off goes on any more, and takes the fault back if its time has not come.
func (s *Step) Settle() {
	time.Sleep(3 * Timeout)
	s.ClearFaults()
}

func (s *Step) injectFault(r Request) {
	session := s.Client.Session().ID()
	switch s.Fault {
	case EndBefore, EndAfter:
		s.cancel()
		time.Sleep(time.Microsecond) // in a bubble: until who waits for Ctx has gone on, if it may
	case LoseReply:
		s.DropReply(r.Op, zktest.OfSession(session), zktest.OnPath(r.Path))
	case Cut:
		s.CloseConnection(session)
	case Expire:
		s.ExpireSession(session)
	case Kill:
		m := s.MemberOf(s.Hooks.conn)
		m.Kill()
		back := time.AfterFunc(Downtime, m.Start)
		s.t.Cleanup(func() { back.Stop() })
	}
}
