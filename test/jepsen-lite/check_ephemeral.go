package jepsenlite

import (
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/gozkd/gozkd/proto"
)

// A lifetime is what the history tells of a session of the member load.
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
