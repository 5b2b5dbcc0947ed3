package server

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server/facts"
	"github.com/gozkd/gozkd/watch"
)

// Connections returns the connections of clients, the oldest first. The caller owns the result.
func (f *Facts) Connections() []facts.Connection {
	conns := f.conns.all()
	slices.SortFunc(conns, func(a, b *conn) int { return cmp.Compare(a.id, b.id) })
	all := make([]Connection, 0, len(conns))
	for _, c := range conns {
		all = append(all, c.facts())
	}
	return all
}

func (c *conn) facts() Connection {
	now := c.server.cfg.Now()
	c.Lock()
	defer c.Unlock()
	st := &c.stats
	f := Connection{
		ID: int64(c.id), Remote: c.NetConn().RemoteAddr().String(), Secure: c.port == portSecure, TLS: c.encrypted(), Queued: c.queue.len(),
		Writing:  c.Out.Len() > 0, // more waits after what is being written
		Received: st.Received, Sent: st.Sent, Since: st.Since,
		Session: int64(c.session), Timeout: time.Duration(c.timeoutMs) * time.Millisecond,
		LastOp: cmp.Or(st.LastOp.Info().Abbrev, "NA"), LastXid: st.LastXid, LastZxid: int64(st.LastZxid), LastReply: st.LastReply,
		LastLatency: st.LastLatency,
	}
	f.MinMs, f.AvgMs, f.MaxMs = st.Latencies()
	f.Heard = c.LastBytes().Round(0) // by the wall clock alone, for others
	f.Identities = shownIdentities(c.IDs)
	timeout := f.Timeout
	if c.session == 0 {
		timeout = c.server.live.Load().HandshakeTimeout
	}
	// Sessions expire by whole ticks, and their connections with them.
	tick := c.server.cfg.Tick
	f.Expires = c.LastAlive(now).Add(timeout).Truncate(tick).Add(tick)
	return f
}

// ResetConnectionStats resets the counts of all connections, like the crst word.
func (f *Facts) ResetConnectionStats() {
	for _, c := range f.conns.all() {
		c.Lock()
		c.stats.Reset()
		c.Unlock()
	}
}

// Watches returns the paths that connections to this server watch, the oldest connection first:
// data, persistent and recursive watches, as in the wchc word. Connections that open or close
// during the call may be missing. The caller owns the result. The cost grows with the number of
// watches, and setting and firing watches waits meanwhile.
func (f *Facts) Watches() []facts.SessionPaths {
	byConn, ids := f.state.watches.ByConn(), f.sessionIDs()
	all := make([]SessionPaths, 0, len(byConn))
	for _, c := range slices.Sorted(maps.Keys(byConn)) {
		if id, ok := ids[c]; ok {
			all = append(all, SessionPaths{Session: int64(id), Paths: byConn[c]})
		}
	}
	return all
}

var watchKinds = [...]struct {
	kind watch.Kind
	name string
}{{watch.Data, "data"}, {watch.Child, "children"}, {watch.Persistent, "persistent"}, {watch.PersistentRecursive, "recursive"}}

// FindWatches returns the watches on this server of the sessions and paths for which keep returns
// true, ordered by session and path, and whether there are more than limit. keep is called with a
// path only if it returned true for the session with the path "". It must be quick: setting and
// firing watches waits while one session's watches are looked at. The caller owns the result.
func (f *Facts) FindWatches(keep func(session int64, path string) bool, limit int) (found []facts.Watch, more bool) {
	ids := f.sessionIDs()
	for _, c := range slices.SortedFunc(maps.Keys(ids), func(a, b watch.ConnID) int { return cmp.Compare(ids[a], ids[b]) }) {
		id := int64(ids[c])
		if !keep(id, "") {
			continue
		}
		modes := make(map[string]watch.Kind)
		f.state.watches.OfConn(c, func(path string, k watch.Kind) bool {
			if _, known := modes[path]; known || keep(id, path) {
				more = more || !known && len(found)+len(modes) == limit
				if !known && more {
					return false
				}
				modes[path] |= k
			}
			return true
		})
		for _, path := range slices.Sorted(maps.Keys(modes)) {
			w := Watch{Session: id, Path: path}
			for _, k := range watchKinds {
				if modes[path]&k.kind != 0 {
					w.Kinds = append(w.Kinds, k.name)
				}
			}
			found = append(found, w)
		}
		if more {
			break
		}
	}
	return found, more
}

// WatchCounts returns how many connections have watches of the kinds that Watches returns, on how
// many paths, and how many pairs of both there are.
func (f *Facts) WatchCounts() (connections, paths, watches int) { return f.state.watches.Stats() }

func (f *Facts) sessionIDs() map[watch.ConnID]proto.SessionID {
	ids := make(map[watch.ConnID]proto.SessionID)
	for _, c := range f.conns.all() {
		c.Lock()
		if c.session != 0 {
			ids[c.id] = c.session
		}
		c.Unlock()
	}
	return ids
}

// SlowRequests returns the last slow requests of this server, at most 100, the newest first, and
// the duration from which on a request is slow; 0: none is. Of more than 10 in a second, the rest
// is left out, as in the log. The caller owns the result.
func (f *Facts) SlowRequests() (last []facts.SlowRequest, from time.Duration) {
	return f.meter.Slow.Last(), f.live.Load().SlowRequest
}

// Hot returns the hottest paths and clients of this server. The caller owns the result.
func (f *Facts) Hot() facts.HotSpots {
	return f.meter.Hot.Spots(func(id proto.SessionID) string {
		if c := f.conns.ofSession(id); c != nil {
			return c.NetConn().RemoteAddr().String()
		}
		if e, _ := f.conns.locals.Get(id); e.Conn != nil {
			return e.Conn.NetConn().RemoteAddr().String()
		}
		return ""
	})
}
