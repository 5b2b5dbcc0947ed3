package server

import (
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server/facts"
	"github.com/gozkd/gozkd/server/internal/capacity"
	"github.com/gozkd/gozkd/server/internal/meter"
)

// crowd returns how many bytes the connections of clients and their watches take, and may take.
func (g *growth) crowd(loading bool) (used, limit int64) {
	used = g.connections.Load() + g.state.watches.Bytes()
	return used, capacity.CrowdLimit(g.gauge.Allowed, g.weight.Load(), loading)
}

// admits reports whether there is memory for a newcomer that takes that many bytes which do not
// count yet. Bytes that wait for clients count, too, except for newcomers that are always let in:
// otherwise a few clients that read slowly would keep out a client that wants to delete.
func (g *growth) admits(n capacity.Newcomer, bytes int64) bool {
	used, limit := g.crowd(g.state.isDropped() || !g.life.Serving.Load() && !g.readOnly.Load())
	_, always := g.crowd(true)
	if n.Fits(used+bytes+g.conns.links.Memory.Waiting(), limit) || n.Fits(used+bytes, always) {
		return true
	}
	g.refusing.Store(true)
	g.meter.Count(meter.ConnectionsRejected)
	g.meter.Count(meter.Crowded)
	return false
}

// admitted reports whether there is memory for the session that a client asks for. If not, its
// connection is closed without an answer, so that it tries another server.
func (c newcomer) admitted(r *proto.ConnectRequest) bool {
	n := capacity.NewSession
	if r.SessionID != 0 {
		n = capacity.Returning
	}
	return c.as != nil || c.server.growth.admits(n, 0)
}

func (g *growth) crowdFacts() facts.Crowd {
	used, limit := g.crowd(false)
	return facts.Crowd{Bytes: used, Limit: limit, Refusing: g.refusing.Load()}
}

func (g *growth) stillCrowded() bool {
	if used, limit := g.crowd(false); capacity.Resumes(used+g.conns.links.Memory.Waiting(), limit) {
		g.refusing.Store(false)
	}
	return g.refusing.Load()
}
