package server

import (
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/gozkd/gozkd/consensus"
	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server/internal/bounds"
	"github.com/gozkd/gozkd/server/internal/liveness"
)

// Access for tests to internals of the server.

// LeaderOf returns the leader as far as s knows, 0 for none.
func LeaderOf(s *Server) int {
	if s.node == nil {
		return 0
	}
	return int(s.node.Status().Leader)
}

// Serving reports whether a server has a leader and has caught up.
func Serving(s *Server) bool {
	now, _ := s.service()
	return now.stage > stageLagging
}

// MembersKnown reports whether the state of a started server has the members of the ensemble.
func MembersKnown(s *Server) bool { return s.membersKnown(s.node.Status().Voters) }

// StatusOf returns the status of a started server's consensus.
func StatusOf(s *Server) consensus.Status { return s.node.Status() }

// StateOf returns the last zxid and the digest of the state after it.
func StateOf(s *Server) string {
	s.state.RLock()
	defer s.state.RUnlock()
	return fmt.Sprintf("%v %016x", s.state.tree.LastZxid(), s.state.tree.Digest())
}

// SetLevels makes a configuration that of a version with this highest feature level.
func SetLevels(c *Config, most uint64) {
	c.levels = consensus.LevelRange{Min: 1, Max: consensus.Level(most)}
}

// ReloadedWith returns a server's configuration with a change.
func ReloadedWith(s *Server, change func(*Config)) Config {
	c := *s.live.Load()
	change(&c)
	return c
}

// Corrupt changes the state of this server alone, and returns when that is done.
func Corrupt(s *Server) {
	done := make(chan struct{})
	s.node.Read(func() { // on the goroutine that applies
		s.state.Lock()
		body := datatree.CreateSessionBody{TimeoutMs: 1000}
		s.state.tree.Apply(datatree.Header{Zxid: s.state.tree.LastZxid().Next()}, &datatree.Request{Op: proto.OpCreateSession, Server: 200, Body: body.Append(nil)})
		s.state.Unlock()
		close(done)
	})
	<-done
}

// LeaveRoom sets how much room a backup leaves on the disk. No backup may be made meanwhile.
func (s *Server) LeaveRoom(bytes int64) { s.backups.logRoom = bytes }

// ProposeRaw proposes any bytes as a request.
func ProposeRaw(s *Server, payload []byte) { s.node.Propose(payload, nil) }

// ClientMemory returns what clients hold, and an error if the budget's counters are not the sums of
// the connections' accounts and of the shared data. Nothing may be under way.
func ClientMemory(s *Server) (unread, queued int64, err error) {
	b := &s.conns.links.Memory
	unread, queued = b.Unread.Load(), b.Queued.Load()
	var sums [2]int64
	holders := map[*bounds.Blob]int64{}
	for _, c := range s.conns.all() {
		c.Lock()
		sent, waits, shared := c.Charged()
		sums[0] += sent
		sums[1] += waits
		for _, blob := range shared {
			holders[blob]++
		}
		c.Unlock()
	}
	b.EachBlob(func(blob *bounds.Blob, bytes, n int64) {
		sums[0] += bytes
		if n != holders[blob] {
			err = fmt.Errorf("shared data of %d bytes has %d holders, but says %d", bytes, holders[blob], n)
		}
		delete(holders, blob)
	})
	if len(holders) > 0 {
		err = fmt.Errorf("%d blobs of shared data are held, but not in the table", len(holders))
	}
	if sums != [2]int64{unread, queued} {
		err = fmt.Errorf("the connections hold %d and %d bytes, the budget says %d and %d", sums[0], sums[1], unread, queued)
	}
	return unread, queued, err
}

// FillLocals makes a server count as many local sessions without a connection as it may have.
func FillLocals(s *Server) {
	nc, _ := net.Pipe() // nothing reads or writes
	c := newConn(s, nc, portPlain, "client")
	for id := range proto.SessionID(liveness.MaxIdle) {
		s.conns.locals.Add(id, liveness.Local[*conn]{Conn: c, TimeoutMs: 1 << 30}, s.cfg.Now())
		s.conns.locals.Release(id, c, s.cfg.Now())
	}
}

// FillSessions opens as many global sessions as a full state has room for.
func FillSessions(s *Server) {
	var opened sync.WaitGroup
	body := datatree.CreateSessionBody{TimeoutMs: 1 << 30}
	for range 1000 {
		opened.Add(1)
		s.propose(datatree.Request{Op: proto.OpCreateSession, Server: s.cfg.MemberID, Body: body.Append(nil)}, func(*datatree.Result) { opened.Done() })
	}
	opened.Wait()
}

// StandStill makes a server believe that its process stands still for a minute from now on.
func StandStill(s *Server) {
	s.standstill.Note(time.Now())
	s.standstill.Note(time.Now().Add(time.Minute))
}

// PeerPorts returns the addresses on which a server listens for other members.
func PeerPorts(s *Server) string { return s.ports.peers.Listener().Addr().String() }

// Dropped reports whether a server reads a state for which it has dropped its own.
func Dropped(s *Server) bool { return s.state.isDropped() }

// BoundWrites bounds the bytes of short writes, and of long requests. No client has sent any yet.
func BoundWrites(s *Server, bytes int) { s.writes.Init(s.cfg.maxWrites(), bytes, 0, 0) }

// HeldByLong returns how many bytes long requests hold.
func HeldByLong(s *Server) int { return s.writes.Long.Held() }

// UnderWay returns how many writes of clients were proposed and are not applied.
func UnderWay(s *Server) int { return s.writes.Outstanding() }

// AwaitedClients returns for how many clients the server waits, for the rest of a frame or until
// they take their replies, and how many large buffers the inputs of all connections hold.
func AwaitedClients(s *Server) (n, large int) {
	for _, c := range s.conns.all() {
		c.Lock()
		if unread, _, _ := c.Charged(); unread > 0 {
			n++
		}
		c.Unlock()
	}
	return n, s.conns.links.LargeInputs()
}

// MakeFull makes the state full, and keeps it so. s leads.
func MakeFull(s *Server) {
	setLimit(s, datatree.Limit{Weight: 1, Cause: datatree.LimitedByMemory, Member: s.cfg.MemberID})
}

// MakeRoom removes the limit of the state, and keeps it so. s leads.
func MakeRoom(s *Server) { setLimit(s, datatree.Limit{}) }

func setLimit(s *Server, limit datatree.Limit) {
	s.growth.proposing.Store(true) // nobody changes the limit
	body, done := datatree.SetLimitBody{Limit: limit, Epoch: s.state.lastZxid().Epoch()}, make(chan struct{})
	s.propose(datatree.Request{Op: proto.OpSetLimit, Body: body.Append(nil)}, func(*datatree.Result) { close(done) })
	<-done
}
