package jepsenlite

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/gozkd/gozkd/proto"
)

// findOneState: replies that show the same path with the same mzxid show the same data and version,
// and a set or create has the zxid of its reply.
func findOneState(h []*Record, found func(string, ...*Record)) {
	type key struct {
		path  string
		mzxid proto.Zxid
	}
	type state struct {
		data    string
		version int32
		by      *Record
	}
	states := map[key]state{}
	note := func(r *Record, path string, mzxid proto.Zxid, data string, version int32) {
		k := key{path, mzxid}
		s, known := states[k]
		switch {
		case !known:
			states[k] = state{data, version, r}
		case s.data != data || s.version != version:
			found(fmt.Sprintf("%s as of %v is %q with version %d, and %q with version %d", path, mzxid, s.data, s.version, data, version), s.by, r)
		}
	}
	for _, r := range h {
		if !r.OK() {
			continue
		}
		for i := range r.Parts {
			switch p := &r.Parts[i]; p.Op {
			case proto.OpSetData:
				if p.Stat.Mzxid != r.Zxid {
					found(fmt.Sprintf("a set of %s with the zxid %v says that it was %v", p.Path, r.Zxid, p.Stat.Mzxid), r)
				}
				note(r, p.Path, r.Zxid, p.Data, p.Stat.Version)
			case proto.OpCreate, proto.OpCreate2:
				note(r, p.Made, r.Zxid, p.Data, 0)
			case proto.OpGetData:
				note(r, p.Path, p.Stat.Mzxid, p.Got, p.Stat.Version)
			}
		}
	}
}

// findReplicas: in the end, all members have the same znodes with the same data and Stats.
func findReplicas(h []*Record, found func(string, ...*Record)) {
	views := map[string]map[string]*Record{} // by client, then by op and path
	for _, r := range h {
		if !isOf(r, loadFinal) || !r.Answered() || r.Op == proto.OpSync {
			continue
		}
		if views[r.Client] == nil {
			views[r.Client] = map[string]*Record{}
		}
		views[r.Client][r.Op.String()+" "+r.Path()] = r
	}
	first := views[loadFinal+"-1"]
	for client, view := range views {
		for key, r := range view {
			o := first[key]
			if o == nil {
				found(fmt.Sprintf("%s of %s has no like on member 1", key, client), r)
				continue
			}
			p, q := r.Parts[0], o.Parts[0]
			slices.Sort(p.Children)
			slices.Sort(q.Children)
			if r.Err != o.Err || p.Got != q.Got || p.Stat != q.Stat || !slices.Equal(p.Children, q.Children) {
				found(fmt.Sprintf("%s of %s differs from member 1's: %v and %v, %+v and %+v",
					key, client, strings.TrimSpace(p.Got), strings.TrimSpace(q.Got), p.Stat, q.Stat), r, o)
			}
		}
		for key, o := range first {
			if view[key] == nil {
				found(fmt.Sprintf("%s of member 1 has no like at %s", key, client), o)
			}
		}
	}
}

// findZxidOrder: writes that follow each other have rising zxids across all clients and servers, no
// two share a zxid, and a synced read is at least as new as every write answered before the sync
// was sent.
func findZxidOrder(h []*Record, found func(string, ...*Record)) {
	// For each call time: the newest write answered before it.
	writes := slices.DeleteFunc(slices.Clone(h), func(r *Record) bool { return !r.Writes() || !r.OK() })
	slices.SortFunc(writes, func(a, b *Record) int { return cmp.Compare(a.Return, b.Return) })
	newest := make([]*Record, len(writes)) // of writes[:i+1]
	byZxid := map[proto.Zxid]*Record{}
	for i, w := range writes {
		newest[i] = w
		if i > 0 && newest[i-1].Zxid > w.Zxid {
			newest[i] = newest[i-1]
		}
		if other := byZxid[w.Zxid]; other != nil {
			found(fmt.Sprintf("two writes have the zxid %v", w.Zxid), other, w)
		}
		byZxid[w.Zxid] = w
	}
	before := func(call int64) *Record {
		i, _ := slices.BinarySearchFunc(writes, call, func(w *Record, call int64) int { return cmp.Compare(int64(w.Return), call) })
		if i == 0 {
			return nil
		}
		return newest[i-1]
	}
	for _, r := range h {
		switch {
		case r.Writes() && r.OK():
			if w := before(int64(r.Call)); w != nil && w.Zxid >= r.Zxid {
				found(fmt.Sprintf("a write got %v after one had got %v", r.Zxid, w.Zxid), w, r)
			}
		case r.Synced != 0:
			if w := before(int64(r.Synced)); w != nil && w.Zxid > r.Zxid {
				found(fmt.Sprintf("a synced read saw %v after a write had got %v", r.Zxid, w.Zxid), w, r)
			}
		}
	}
}

// findReplyOrder: the requests of a connection are answered in the order in which they were sent,
// none is left out, and there is no reply without a request.
func findReplyOrder(h []*Record, found func(string, ...*Record)) {
	last := map[int]*Record{} // by connection
	for _, r := range h {
		if !r.Answered() {
			continue
		}
		if r.Number == 0 {
			found(fmt.Sprintf("a reply with the xid %d, which nobody waits for", r.Xid), r)
			continue
		}
		switch l := last[r.Conn]; {
		case l == nil && r.Number != 1:
			found(fmt.Sprintf("the first reply on connection %d is to request %d", r.Conn, r.Number), r)
		case l != nil && r.Number != l.Number+1:
			found(fmt.Sprintf("the reply to request %d of connection %d follows that to %d", r.Number, r.Conn, l.Number), l, r)
		}
		last[r.Conn] = r
	}
}

// A lifetime is the history of a session of the member load.
type lifetime struct {
	made    *Record // the multi that made its ephemerals
	session proto.SessionID
	timeout time.Duration
	alive   *Record // the last successful write, by the time it was sent
	closed  *Record // the request that closed it
}

// findEphemeral: a list shows all ephemerals of a session or none. None may be missing while its
// session was not closed and its client was alive less than the timeout before. In the end all are
// gone.
func findEphemeral(h []*Record, found func(string, ...*Record)) {
	lives := map[string]*lifetime{} // by client name, without the load's
	bySession := map[proto.SessionID]*lifetime{}
	timeouts := map[proto.SessionID]time.Duration{}
	for _, r := range h {
		switch {
		case r.Kind == KindOpen && !r.Refused:
			timeouts[r.Session] = r.Timeout
		case isOf(r, loadMember) && r.Op == proto.OpMulti && r.OK():
			l := &lifetime{made: r, session: r.Session, timeout: timeouts[r.Session]}
			lives[groupOf(r.Parts[0].Path)], bySession[r.Session] = l, l
		}
	}
	for _, r := range h {
		l := bySession[r.Session]
		switch {
		case l == nil:
		case r.Kind == KindReply && r.Op == proto.OpCloseSession:
			l.closed = r
		case r.Writes() && r.OK() && (l.alive == nil || r.Call > l.alive.Call):
			l.alive = r
		}
	}
	var last *Record
	for _, r := range h {
		if !isOf(r, loadMember) || r.Op != proto.OpGetChildren2 || !r.OK() {
			continue
		}
		last = r
		groups := map[string]int{}
		for _, name := range r.Parts[0].Children {
			groups[groupOf(name)]++
		}
		for group, n := range groups {
			if n != memberLoadNodes {
				found(fmt.Sprintf("a list has %d of the %d ephemerals of %s", n, memberLoadNodes, group), r)
			}
		}
		for group, l := range lives {
			if groups[group] == 0 && r.Zxid >= l.made.Zxid && (l.closed == nil || l.closed.Call > r.Return) && r.Return < l.alive.Call+l.timeout {
				found(fmt.Sprintf("a list does not have the ephemerals of %s, %v after its client was alive, with a timeout of %v",
					group, r.Return-l.alive.Call, l.timeout), l.made, l.alive, r)
			}
		}
	}
	if last != nil && len(last.Parts[0].Children) > 0 {
		found(fmt.Sprintf("in the end there are ephemerals of sessions that are gone: %v", last.Parts[0].Children), last)
	}
}

// groupOf returns the common prefix of the names of a session's ephemerals.
func groupOf(p string) string {
	group, _, _ := strings.Cut(path.Base(p), "_")
	return group
}

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
		case proto.OpGetData, proto.OpExists, proto.OpSetData, proto.OpGetChildren2:
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
// that its client was alive, which every successful write shows. Time in which no member ran does
// not count. A server knows when it was paused to half a tick, for which a quarter of the timeout
// is allowed.
func findSessionLost(h []*Record, found func(string, ...*Record)) {
	alive := map[proto.SessionID]*Record{}
	timeouts := map[proto.SessionID]time.Duration{}
	lastOf := map[string]proto.SessionID{} // by client: a refusal does not name the session
	var pauses []*Record
	for _, r := range h {
		switch {
		case r.Kind == KindPause:
			pauses = append(pauses, r)
		case r.Kind == KindOpen && !r.Refused:
			timeouts[r.Session] = r.Timeout
			lastOf[r.Client] = r.Session
		case r.Kind == KindOpen:
			s := lastOf[r.Client]
			a := alive[s]
			if a == nil {
				continue
			}
			var paused time.Duration
			for _, p := range pauses {
				paused += max(0, min(p.Return, r.Return)-max(p.Call, a.Call)-timeouts[s]/4)
			}
			if r.Return-paused < a.Call+timeouts[s] {
				found(fmt.Sprintf("session %v of %s with a timeout of %v was refused %v after it sent a write that succeeded; all members were paused for at least %v of that",
					s, r.Client, timeouts[s], r.Return-a.Call, paused), a, r)
			}
		case r.Writes() && r.OK():
			if a := alive[r.Session]; a == nil || r.Call > a.Call {
				alive[r.Session] = r
			}
		}
	}
}

// findFull: an ensemble that is full refuses what adds data, and nothing else. A create adds data,
// and so does a set of more bytes than the znode may have had at some time, if that is known.
func findFull(h []*Record, found func(string, ...*Record)) {
	least := map[string]int{}             // by path: the fewest bytes that a request gives to the znode
	created := map[string]time.Duration{} // by path: what a znode holds after that is of this history
	for _, r := range h {
		for i := range r.Parts {
			p := &r.Parts[i]
			creates := p.Op.Info().Group == "create"
			if had, known := least[p.Path]; (creates || p.Op == proto.OpSetData) && (!known || len(p.Data) < had) {
				least[p.Path] = len(p.Data)
			}
			if _, known := created[p.Path]; creates && r.OK() && !known {
				created[p.Path] = r.Return
			}
		}
	}
	for _, r := range h {
		if !r.Answered() || r.Err != proto.ErrQuotaExceeded {
			continue
		}
		grows := slices.ContainsFunc(r.Parts, func(p Part) bool {
			since, known := created[p.Path]
			return p.Op.Info().Group == "create" || p.Op == proto.OpSetData && (!known || r.Call < since || len(p.Data) > least[p.Path])
		})
		if !grows {
			found(fmt.Sprintf("a %v of %s, which adds no data, is refused because the ensemble is full", r.Op, r.Path()), r)
		}
	}
}
