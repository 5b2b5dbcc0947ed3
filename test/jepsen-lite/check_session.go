package jepsenlite

import (
	"fmt"
	"time"

	"github.com/gozkd/gozkd/proto"
)

// findSessionZxid: the zxids of a session never go back, also across servers.
func findSessionZxid(h []*Record, found func(string, ...*Record)) {
	last := map[proto.SessionID]*Record{}
	for _, r := range h {
		if !r.Answered() || r.Zxid <= 0 || r.Op == proto.OpAuth {
			continue
		}
		if l := last[r.Session]; l != nil && l.Zxid > r.Zxid {
			found(fmt.Sprintf("session %v got %v after %v", r.Session, r.Zxid, l.Zxid), l, r)
		}
		last[r.Session] = r
	}
}

// findSessionView: a session sees its own writes, and no znode in an older state than before.
func findSessionView(h []*Record, found func(string, ...*Record)) {
	type key struct {
		session proto.SessionID
		path    string
	}
	last := map[key]*Record{}
	shown := func(r *Record) (string, proto.Zxid) { // the znode and the state of it that a reply shows
		p := &r.Parts[0]
		switch r.Op {
		case proto.OpGetData, proto.OpExists, proto.OpSetData:
			return p.Path, p.Stat.Mzxid
		case proto.OpGetChildren2:
			return p.Path, p.Stat.Mzxid
		case proto.OpCreate, proto.OpCreate2:
			return p.Made, r.Zxid
		}
		return "", 0
	}
	for _, r := range h {
		if !r.OK() || len(r.Parts) != 1 {
			continue
		}
		path, mzxid := shown(r)
		if path == "" {
			continue
		}
		k := key{r.Session, path}
		if l := last[k]; l != nil {
			if _, before := shown(l); mzxid < before {
				found(fmt.Sprintf("session %v saw %s as of %v after %v", r.Session, path, mzxid, before), l, r)
			}
		}
		last[k] = r
	}
}

// findSessionLost: a session does not expire before its timeout has passed since a quorum last knew
// that its client was alive, which every successful write shows.
func findSessionLost(h []*Record, found func(string, ...*Record)) {
	alive := map[proto.SessionID]*Record{}
	timeouts := map[proto.SessionID]time.Duration{}
	lastOf := map[string]proto.SessionID{} // by client: a refusal does not name the session
	for _, r := range h {
		switch {
		case r.Kind == KindOpen && !r.Refused:
			timeouts[r.Session] = r.Timeout
			lastOf[r.Client] = r.Session
		case r.Kind == KindOpen:
			s := lastOf[r.Client]
			if a := alive[s]; a != nil && r.Return < a.Call+timeouts[s] {
				found(fmt.Sprintf("session %v of %s with a timeout of %v was refused %v after it sent a write that succeeded",
					s, r.Client, timeouts[s], r.Return-a.Call), a, r)
			}
		case r.Writes() && r.OK():
			if a := alive[r.Session]; a == nil || r.Call > a.Call {
				alive[r.Session] = r
			}
		}
	}
}
