package server

import (
	"bufio"
	"cmp"
	"slices"
	"time"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/watch"
)

// connFacts is what the words tell of a connection, at one moment.
type connFacts struct {
	id             watch.ConnID
	peer           string
	interest       int // as java.nio has it: 1 is read, 4 is write
	queued         int
	received, sent int64
	session        proto.SessionID
	lastOp         proto.OpCode
	since          time.Time
	timeoutMs      int32
	lastXid        int32
	lastZxid       proto.Zxid
	lastTime       time.Time
	lastTook       time.Duration
	minMs, maxMs   int64
	avgMs          float64
	expires        time.Time // when it is closed if nothing more comes
}

// connFacts returns the facts of all connections, the oldest first. asker, which may be nil, is not read any more.
func (s *Server) connFacts(asker *conn) []connFacts {
	conns := s.connections()
	all := make([]connFacts, 0, len(conns))
	for _, c := range conns {
		f := c.facts()
		if c == asker {
			f.interest = 0
		}
		all = append(all, f)
	}
	slices.SortFunc(all, func(a, b connFacts) int { return cmp.Compare(a.id, b.id) })
	return all
}

func (c *conn) facts() connFacts {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := connFacts{
		id: c.id, peer: "/" + c.nc.RemoteAddr().String(), interest: 1, queued: c.queue.len(),
		received: c.receivedPackets, sent: c.sentPackets,
		session: c.session, lastOp: c.lastOp, since: c.since, timeoutMs: c.timeoutMs, lastXid: c.lastXid, lastZxid: c.lastZxid,
		lastTime: c.lastTime, lastTook: c.lastTook,
	}
	if len(c.out) > 0 { // more waits behind what is being written
		f.interest |= 4
	}
	f.minMs, f.avgMs, f.maxMs = c.latency.read()
	timeout := time.Duration(c.timeoutMs) * time.Millisecond
	if c.session == 0 {
		timeout = c.server.cfg.HandshakeTimeout
	}
	f.expires = c.heard().Add(timeout)
	return f
}

// writeConnections writes a line for each connection: of cons if full is set, else of stat.
func (s *Server) writeConnections(w *bufio.Writer, asker *conn, full bool) {
	for _, f := range s.connFacts(asker) {
		say(w, " %s[%x](queued=%d,recved=%d,sent=%d", f.peer, f.interest, f.queued, f.received, f.sent)
		if full && f.session != 0 {
			say(w, ",sid=%s,lop=%s,est=%d,to=%d", f.session, opAbbreviation(f.lastOp), f.since.UnixMilli(), f.timeoutMs)
			if f.lastXid >= 0 {
				say(w, ",lcxid=0x%x", f.lastXid)
			}
			lastMs := int64(0)
			if !f.lastTime.IsZero() {
				lastMs = f.lastTime.UnixMilli()
			}
			say(w, ",lzxid=%s,lresp=%d,llat=%d,minlat=%d,avglat=%d,maxlat=%d",
				f.lastZxid, lastMs, f.lastTook.Milliseconds(), f.minMs, int64(f.avgMs), f.maxMs)
		}
		say(w, ")\n")
	}
}

// resetConnections forgets what the connections have counted.
func (s *Server) resetConnections() {
	for _, c := range s.connections() {
		c.mu.Lock()
		c.receivedPackets, c.sentPackets = 0, 0
		c.lastOp, c.lastXid, c.lastZxid = proto.OpNotification, -1, proto.NoZxid
		c.lastTime, c.lastTook = time.Time{}, 0
		c.latency.reset()
		c.mu.Unlock()
	}
}

// opAbbreviation returns what cons calls an op. NA is none, or one without an abbreviation. Source: ZooKeeper's
// Request.op2String and FinalRequestProcessor.
func opAbbreviation(op proto.OpCode) string {
	switch op {
	case proto.OpCreate, proto.OpCreate2, proto.OpCreateContainer, proto.OpCreateTTL:
		return "CREA"
	case proto.OpDelete, proto.OpDeleteContainer:
		return "DELE"
	case proto.OpExists:
		return "EXIS"
	case proto.OpGetData:
		return "GETD"
	case proto.OpSetData:
		return "SETD"
	case proto.OpGetACL:
		return "GETA"
	case proto.OpSetACL:
		return "SETA"
	case proto.OpGetChildren, proto.OpGetChildren2:
		return "GETC"
	case proto.OpSync:
		return "SYNC"
	case proto.OpPing:
		return "PING"
	case proto.OpMulti:
		return "MULT"
	case proto.OpMultiRead:
		return "MLTR"
	case proto.OpReconfig:
		return "RECO"
	case proto.OpCheckWatches:
		return "CHKW"
	case proto.OpRemoveWatches:
		return "REMW"
	case proto.OpSetWatches:
		return "SETW"
	case proto.OpSetWatches2:
		return "STW2"
	case proto.OpAddWatch:
		return "ADDW"
	case proto.OpGetEphemerals:
		return "GETE"
	case proto.OpGetAllChildrenNumber:
		return "GETACN"
	case proto.OpWhoAmI:
		return "HOMI"
	case proto.OpCreateSession:
		return "SESS"
	case proto.OpCloseSession:
		return "CLOS"
	}
	return "NA"
}
