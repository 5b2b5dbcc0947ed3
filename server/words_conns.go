package server

import (
	"bufio"

	"github.com/gozkd/gozkd/proto"
)

// writeConnections writes a line for each connection: of cons if full is set, else of stat. asker is not read any more.
func (s *Server) writeConnections(w *bufio.Writer, asker *conn, full bool) {
	for _, f := range s.Connections() {
		interest := 0
		if f.id != asker.id {
			interest = f.InterestOps()
		}
		say(w, " /%s[%x](queued=%d,recved=%d,sent=%d", f.Remote, interest, f.Queued, f.Received, f.Sent)
		if full && f.Session != 0 {
			say(w, ",sid=%s,lop=%s,est=%d,to=%d", proto.SessionID(f.Session), f.LastOp, f.Since.UnixMilli(), f.Timeout.Milliseconds())
			if f.LastXid >= 0 {
				say(w, ",lcxid=0x%x", f.LastXid)
			}
			lastMs := int64(0)
			if !f.LastReply.IsZero() {
				lastMs = f.LastReply.UnixMilli()
			}
			say(w, ",lzxid=%s,lresp=%d,llat=%d,minlat=%d,avglat=%d,maxlat=%d",
				proto.Zxid(f.LastZxid), lastMs, f.LastLatency.Milliseconds(), f.MinMs, int64(f.AvgMs), f.MaxMs)
		}
		say(w, ")\n")
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
