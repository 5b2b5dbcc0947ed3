package zktest

import (
	"time"

	"github.com/gozkd/gozkd/internal/faultproxy"
	"github.com/gozkd/gozkd/proto"
)

// Op is a kind of request. A kind can stand for several op codes: four op codes create znodes.
type Op string

// The kinds of requests that faults apply to.
const (
	Any      Op = "any" // all of the following except Connect
	Create   Op = "create"
	Delete   Op = "delete"
	Exists   Op = "exists"
	Get      Op = "get"
	Set      Op = "set"
	GetACL   Op = "getACL"
	SetACL   Op = "setACL"
	Children Op = "children"
	Multi    Op = "multi"
	Sync     Op = "sync"
	Watch    Op = "watch"   // to add, remove, check or restore watches; a get that sets a watch is a Get
	Connect  Op = "connect" // to create or resume a session
)

// Match restricts the requests that a fault applies to: see OnPath, OfSession and Times.
type Match func(*matched)

type matched faultproxy.Fault

// OnPath matches requests for a path that begins with prefix, as the client sends it: a sequential
// name has no number yet. A multi matches if any of its paths does.
func OnPath(prefix string) Match { return func(f *matched) { f.PathPrefix = prefix } }

// OfSession matches the requests of one client.
func OfSession(id int64) Match { return func(f *matched) { f.Session = id } }

// Times applies the fault to the first n requests that match, for a negative n to all until Remove.
func Times(n int) Match { return func(f *matched) { f.Times = n } }

// Fault is a fault that waits for a request or has happened.
type Fault struct {
	service *Service
	armed   *faultproxy.Armed
}

// Wait waits until the fault has happened as often as Times says, or once if Times sets no limit.
func (f *Fault) Wait() {
	f.service.t.Helper()
	select {
	case <-f.armed.Done():
	case <-time.After(waitTimeout):
		f.service.t.Fatalf("zktest: within %v no request matched the fault: %v", waitTimeout, f.armed)
	}
}

// Count returns how often the fault has happened.
func (f *Fault) Count() int { return f.armed.Count() }

// Remove removes the fault. It does not undo what the fault has done already.
func (f *Fault) Remove() { f.armed.Remove() }

// DropReply lets the server apply the next matching request and then breaks the connection instead
// of replying, so that the client cannot know whether the request was applied.
func (s *Service) DropReply(op Op, match ...Match) *Fault {
	s.t.Helper()
	return s.arm(faultproxy.Fault{Kind: faultproxy.DropReply, Op: faultproxy.Op(op)}, match)
}

// Delay holds back the next matching request, and everything after it on the connection, for d.
func (s *Service) Delay(op Op, d time.Duration, match ...Match) *Fault {
	s.t.Helper()
	return s.arm(faultproxy.Fault{Kind: faultproxy.Delay, Op: faultproxy.Op(op), Delay: d}, match)
}

// FailNext answers the next matching request with code, without executing it.
func (s *Service) FailNext(op Op, code proto.ErrCode, match ...Match) *Fault {
	s.t.Helper()
	return s.arm(faultproxy.Fault{Kind: faultproxy.Fail, Op: faultproxy.Op(op), Code: code}, match)
}

// ClearFaults removes all faults that have not happened yet.
func (s *Service) ClearFaults() { s.cluster.Disarm() }

func (s *Service) arm(f faultproxy.Fault, match []Match) *Fault {
	s.t.Helper()
	for _, m := range match {
		m((*matched)(&f))
	}
	armed, err := s.cluster.Arm(f)
	s.must(err)
	return &Fault{s, armed}
}
