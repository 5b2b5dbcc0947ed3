package cluster

import (
	"slices"
	"sync"
)

// linkState is which members may hear each other.
type links struct {
	mu       sync.Mutex
	group    []int  // of each member, by Partition of the lab
	isolated []bool // by Partition of the member
}

func (s *links) reset(members int) {
	s.group, s.isolated = make([]int, members), make([]bool, members)
}

// connected reports whether nothing is cut between two members. s.mu is held.
func (s *links) connected(a, b *Member) bool {
	return a == b || s.group[a.id-1] == s.group[b.id-1] && !s.isolated[a.id-1] && !s.isolated[b.id-1]
}

// Partition cuts the links between members of different groups; those that are in no group form one more. What is sent does not
// arrive, and nothing breaks, until Heal. Clients reach every member. It replaces an earlier Partition.
func (c *Cluster) Partition(groups ...[]int) error {
	if len(c.members) == 1 {
		return errorf(ErrState, "cluster: a server alone has no other members to be cut off from; its own Partition cuts it off from clients")
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

// Heal mends all links between members, and those of members that were cut off from clients too.
func (c *Cluster) Heal() {
	c.links.mu.Lock()
	clear(c.links.group)
	c.links.mu.Unlock()
	for _, m := range c.members {
		_ = m.Heal() // it never fails
	}
}

func (c *Cluster) isolate(id int, cut bool) {
	c.links.mu.Lock()
	c.links.isolated[id-1] = cut
	c.links.mu.Unlock()
	c.relink()
}

// relink cuts and mends the links as they shall be. Those of a member that is paused are held as well: its process would
// not send what it has, nor its system take more than buffers hold.
func (c *Cluster) relink() {
	c.links.mu.Lock()
	defer c.links.mu.Unlock()
	for _, a := range c.members {
		for _, b := range c.members {
			if a != b {
				cut := !c.links.connected(a, b) || a.State() == Paused || b.State() == Paused
				c.network.Cut(a.host(), b.host(), cut)
			}
		}
	}
}

// majority returns the members that run and can hear each other, if they are a majority of all, and else nil.
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

func (s *links) isIsolated(m *Member) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.isolated[m.id-1]
}
