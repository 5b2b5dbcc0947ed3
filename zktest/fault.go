package zktest

import (
	"time"

	"github.com/gozkd/gozkd/internal/faultproxy"
	"github.com/gozkd/gozkd/proto"
)

// Op is a kind of request, however clients spell it: there are four op codes that create.
type Op string

// The kinds of requests that faults can wait for.
const (
	Any      Op = "any" // any of those that follow but Connect
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
	Watch    Op = "watch"   // to add, remove, check or set watches again; a get with a watch is a Get
	Connect  Op = "connect" // to make a session, or to take it up again
)

// Match narrows the requests that a fault waits for.
type Match func(*faultproxy.Fault)

// OnPath matches requests for a path that begins with prefix, as the client sends it: a sequential name has no number yet. A
// multi is matched by any of its paths.
func OnPath(prefix string) Match { return func(f *faultproxy.Fault) { f.PathPrefix = prefix } }

// OfSession matches the requests of one client.
func OfSession(id int64) Match { return func(f *faultproxy.Fault) { f.Session = id } }

// Times lets the fault happen to the first n requests that match instead of one; a negative n to all until Remove.
func Times(n int) Match { return func(f *faultproxy.Fault) { f.Times = n } }

// Fault is one that waits for its request, or has had it.
type Fault struct {
	service *Service
	armed   *faultproxy.Armed
}

// Wait waits until the fault has happened, as often as it shall; to one for all requests, once.
func (f *Fault) Wait() {
	f.service.t.Helper()
	late := time.NewTimer(waitTimeout)
	defer late.Stop()
	select {
	case <-f.armed.Done():
	case <-late.C:
		f.service.t.Fatalf("zktest: in %v no request came for: %v", waitTimeout, f.armed)
	}
}

// Count returns how often the fault has happened.
func (f *Fault) Count() int { return f.armed.Count() }

// Remove takes the fault back, if it did not happen yet.
func (f *Fault) Remove() { f.armed.Remove() }

// DropReply lets the next such request be applied, and then breaks the connection instead of answering: the client cannot know
// whether it was done.
func (s *Service) DropReply(op Op, match ...Match) *Fault {
	s.t.Helper()
	return s.arm(faultproxy.Fault{Kind: faultproxy.DropReply, Op: faultproxy.Op(op)}, match)
}

// Delay holds the next such request back for d, and with it what follows on the same connection, before the server gets it.
func (s *Service) Delay(op Op, d time.Duration, match ...Match) *Fault {
	s.t.Helper()
	return s.arm(faultproxy.Fault{Kind: faultproxy.Delay, Op: faultproxy.Op(op), Delay: d}, match)
}

// FailNext answers the next such request with the code, and does nothing of it.
func (s *Service) FailNext(op Op, code proto.ErrCode, match ...Match) *Fault {
	s.t.Helper()
	return s.arm(faultproxy.Fault{Kind: faultproxy.Fail, Op: faultproxy.Op(op), Code: code}, match)
}

// ClearFaults takes back all faults that did not happen yet.
func (s *Service) ClearFaults() { s.cluster.Disarm() }

func (s *Service) arm(f faultproxy.Fault, match []Match) *Fault {
	s.t.Helper()
	for _, m := range match {
		m(&f)
	}
	armed, err := s.cluster.Arm(f)
	s.must(err)
	return &Fault{s, armed}
}
