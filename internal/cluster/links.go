package cluster

import (
	"slices"
	"sync"
)

// linkState is which members may hear each other.
type linkState struct {
	mu       sync.Mutex
	group    []int  // of each member, by Partition of the lab
	isolated []bool // by Partition of the member
}

func (s *linkState) reset(members int) {
	s.group, s.isolated = make([]int, members), make([]bool, members)
}

// connected reports whether nothing is cut between two members. s.mu is held.
func (s *linkState) connected(a, b *Member) bool {
	return a == b || s.group[a.id-1] == s.group[b.id-1] && !s.isolated[a.id-1] && !s.isolated[b.id-1]
}

// Partition cuts the links between members of different groups; those that are in no group form one more. What is sent does not
// arrive, and nothing breaks, until Heal. Clients reach every member. It replaces an earlier Partition.
func (l *Lab) Partition(groups ...[]int) error {
	if len(l.members) == 1 {
		return kindf(ErrState, "lab: a server alone has no other members to be cut off from; its own Partition cuts it off from clients")
	}
	group := make([]int, len(l.members))
	for i, ids := range groups {
		for _, id := range ids {
			if _, err := l.Member(id); err != nil {
				return err
			}
			if group[id-1] != 0 {
				return kindf(ErrInvalid, "lab: member %d is in two groups", id)
			}
			group[id-1] = i + 1
		}
	}
	l.links.mu.Lock()
	l.links.group = group
	l.links.mu.Unlock()
	l.relink()
	return nil
}

// Heal mends all links between members, and those of members that were cut off from clients too.
func (l *Lab) Heal() {
	l.links.mu.Lock()
	clear(l.links.group)
	l.links.mu.Unlock()
	for _, m := range l.members {
		_ = m.Heal() // it never fails
	}
}

func (l *Lab) isolate(id int, cut bool) {
	l.links.mu.Lock()
	l.links.isolated[id-1] = cut
	l.links.mu.Unlock()
	l.relink()
}

// relink cuts and mends the links as they shall be. Those of a member that is paused are held as well: its process would
// not send what it has, nor its system take more than buffers hold.
func (l *Lab) relink() {
	l.links.mu.Lock()
	defer l.links.mu.Unlock()
	for _, a := range l.members {
		for _, b := range l.members {
			if a != b {
				cut := !l.links.connected(a, b) || a.State() == Paused || b.State() == Paused
				l.network.Cut(a.host(), b.host(), cut)
			}
		}
	}
}

// majority returns the members that run and can hear each other, if they are a majority of all, and else nil.
func (l *Lab) majority() []*Member {
	living := l.living()
	l.links.mu.Lock()
	defer l.links.mu.Unlock()
	for _, a := range living {
		var with []*Member
		for _, b := range living {
			if l.links.connected(a, b) {
				with = append(with, b)
			}
		}
		if len(with) > len(l.members)/2 {
			return slices.Clip(with)
		}
	}
	return nil
}

func (s *linkState) isIsolated(m *Member) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.isolated[m.id-1]
}
