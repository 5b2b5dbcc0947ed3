package recipetest

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/exhaustive"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/zktest"
)

// Fault is a disturbance of a request.
type Fault string

// The faults of Steps.
const (
	EndBefore Fault = "ctx ends before" // the request is not sent
	EndAfter  Fault = "ctx ends after"  // the request was applied, and its answer is not awaited
	// the request is applied, and the connection breaks instead of an answer
	LoseReply Fault = "reply lost"
	Cut       Fault = "connection cut"  // before the request is sent
	Expire    Fault = "session expired" // before the request is sent
	// the client's member, before the request is sent; restarted after Downtime
	Kill Fault = "member killed"
)

// Faults returns all faults.
func Faults() []Fault { return []Fault{EndBefore, EndAfter, LoseReply, Cut, Expire, Kill} }

// Downtime is how long Kill keeps a member down.
const Downtime = 700 * time.Millisecond

// mostRequests is more than any scenario should make.
const mostRequests = 300

// Step is a run of a scenario, with a fault at one request.
type Step struct {
	*World
	Client *recipes.Client // the client that the fault hits; World.Client makes others
	Hooks  *Hooks          // of Client
	Ctx    context.Context // ends with the scenario or by the fault
	Fault  Fault
	K      int // number of the request with the fault, from 1

	cancel        context.CancelFunc
	armed         bool
	faultHappened atomic.Bool
}

// Steps runs the scenario for each fault and each request number K, in a World of its own, until
// the scenario makes fewer than K requests. Unless exhaustive.Enabled, Steps runs a sample in which
// each fault happens, and each request is hit.
//
// The scenario gets a Client with a session, prepares, calls Arm, does with Ctx what is to be
// tested, and checks the result. If the result depends on background work, the scenario calls
// Settle before the checks.
func Steps(t *testing.T, members int, faults []Fault, scenario func(t testing.TB, s *Step)) {
	t.Helper()
	for i, fault := range faults {
		t.Run(string(fault), func(t *testing.T) {
			for k, more := 1, true; more; k++ {
				if k > mostRequests {
					t.Fatalf("recipetest: more than %d requests", mostRequests)
				}
				if !exhaustive.Enabled() && !inSample(i, k, len(faults)) {
					continue
				}
				more = false // in case the run fails
				t.Run(fmt.Sprint(k), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { more = step(t, members, fault, k, scenario) })
				})
			}
		})
	}
}

// inSample reports whether the sample has the i-th of n faults at request k. Every third fault is
// at each of the first three requests, because some scenarios make no more. Then the faults
// alternate.
func inSample(i, k, n int) bool {
	if k <= 3 {
		return (k-1)%3 == i%3
	}
	return (k-1)%n == i
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

// Arm starts to count the requests of Client.
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
			return recipes.ErrNoServer
		}
		return nil
	}, nil)
}

// FaultHappened reports whether the fault has happened. If not, the scenario ran without faults.
func (s *Step) FaultHappened() bool { return s.faultHappened.Load() }

// Settle waits until the effects of the fault are over, and removes a fault that has not happened.
func (s *Step) Settle() {
	time.Sleep(3 * Timeout)
	s.ClearFaults()
}

type sessionID int64

func (id sessionID) SessionID() int64 { return int64(id) }

func (s *Step) injectFault(r Request) {
	session := s.Client.Session().ID()
	switch s.Fault {
	case EndBefore, EndAfter:
		s.cancel()
		time.Sleep(time.Microsecond) // lets goroutines that wait for Ctx run, in the bubble
	case LoseReply:
		s.DropReply(r.Op, zktest.OfSession(session), zktest.OnPath(r.Path))
	case Cut:
		s.CloseConnection(session)
	case Expire:
		s.ExpireSession(session)
	case Kill:
		m := s.MemberOf(sessionID(session))
		m.Kill()
		back := time.AfterFunc(Downtime, m.Start)
		s.t.Cleanup(func() { back.Stop() })
	}
}
