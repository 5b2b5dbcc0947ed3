package cluster

import (
	"slices"
	"sync"
)

// links says which members can reach each other, unless Member.Partition has cut one of them off.
type links struct {
	mu    sync.Mutex
	group []int // by member, set by Cluster.Partition
}

// connected reports whether two members can reach each other. s.mu is held.
func (s *links) connected(a, b *Member) bool {
	return a == b || s.group[a.ID()-1] == s.group[b.ID()-1] && !a.cut.Load() && !b.cut.Load()
}

// Partition cuts the links between members of different groups; members in no group form another
// group. Messages are held back, and no connection breaks, until Heal. Clients reach every member.
// A new Partition replaces the previous partition.
func (c *Cluster) Partition(groups ...[]int) error {
	if len(c.members) == 1 {
		return errorf(ErrState, "cluster: a standalone server has no links to other members; partition the member to cut it off from its clients")
	}
	group := make([]int, len(c.members))
	for i, ids := range groups {
		for _, id := range ids {
			if _, err := c.Member(id); err != nil {
				return err
			}
			if group[id-1] != 0 {
				return errorf(ErrInvalid, "cluster: member %d is in two groups", id)
			}
			group[id-1] = i + 1
		}
	}
	c.links.mu.Lock()
	c.links.group = group
	c.links.mu.Unlock()
	c.relink()
	return nil
}

// Heal restores all links, including those of members partitioned by Member.Partition.
func (c *Cluster) Heal() {
	c.links.mu.Lock()
	clear(c.links.group)
	c.links.mu.Unlock()
	for _, m := range c.members {
		_ = m.Heal() // Heal of a member never fails
	}
}

// relink applies the partitions to the network. It also holds the links of a paused member: a
// stopped process would neither send nor take more than its socket buffers hold.
func (c *Cluster) relink() {
	c.links.mu.Lock()
	defer c.links.mu.Unlock()
	for _, a := range c.members {
		for _, b := range c.members {
			if a != b {
				cut := !c.links.connected(a, b) || a.State() == Paused || b.State() == Paused
				c.Network.Cut(a.Host(), b.Host(), cut)
			}
		}
	}
}

// majority returns the running members that can reach each other, if they are a majority of all.
func (c *Cluster) majority() []*Member {
	running := c.running()
	c.links.mu.Lock()
	defer c.links.mu.Unlock()
	for _, a := range running {
		var with []*Member
		for _, b := range running {
			if c.links.connected(a, b) {
				with = append(with, b)
			}
		}
		if len(with) > len(c.members)/2 {
			return slices.Clip(with)
		}
	}
	return nil
}
