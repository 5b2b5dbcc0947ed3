package consensus

import (
	"maps"
	"slices"
	"sync"
)

// Members of another ensemble are refused at the hello (peers.Accept). But a member without state knows no number that it could compare: it talks
// with everybody, and learns where it belongs only later. Then it must not go on listening to members of another ensemble
// over the connections that are there. After a restore that is not far-fetched: an emptied server is let in by the new
// ensemble while one of the old is still running.

// clusters are the numbers of the ensembles that other members named in the last hello that was accepted of them.
type clusters struct {
	mu sync.Mutex
	of map[uint64]uint64
}

func (c *clusters) note(member, cluster uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil {
		c.of = make(map[uint64]uint64)
	}
	c.of[member] = cluster
}

// foreign reports whether a member belongs to another ensemble than ours. Who knows of none may come to this one.
func (c *clusters) foreign(member, ours uint64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return apart(c.of[member], ours)
}

// apart reports whether two numbers are known and differ.
func apart(a, b uint64) bool { return a != 0 && b != 0 && a != b }

// belongTo is called when the number of this member's ensemble is known. The connections with members of others end; the next hello is
// refused, which both sides log with the reason.
func (n *Node) belongTo(cluster uint64) {
	n.cluster.Store(cluster)
	n.networkMu.Lock()
	network := n.network
	n.networkMu.Unlock()
	if network == nil {
		return
	}
	n.clusters.mu.Lock()
	known := maps.Clone(n.clusters.of)
	n.clusters.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(known)) {
		if apart(known[id], cluster) {
			n.cfg.Logger.Warn("a member of another ensemble was connected: what it said is dropped", "member", id)
			network.Drop(id)
		}
	}
}
