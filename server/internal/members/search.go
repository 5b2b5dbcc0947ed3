package members

import (
	"maps"
	"net/netip"
	"slices"
	"sort"
	"sync"

	"github.com/gozkd/gozkd/internal/serverlist"
	"github.com/gozkd/gozkd/proto"
)

// Search finds members that have moved, for a server with old lines or that has missed a reconfig.
// The address in the state is a further address of a member. While this server is out of touch, so
// are the addresses that the other members know. See ADR 7. The methods of a Search may be called
// from any goroutine.
type Search struct {
	mu      sync.Mutex // guards the fields, and is held while a Tell is called, so that the newest addresses stay
	self    uint64
	own     map[uint64]string
	state   serverlist.Set // the newest members that the state had
	version proto.Zxid     // of state
	heard   map[uint64]heard
	calm    int  // calls of Seek without seeking, since the last with it
	changed bool // heard, since a Tell was called
}

// heard are members as another member has them, newer than those of the state.
type heard struct {
	set     serverlist.Set
	version proto.Zxid
}

// Tell takes host:port by member, and further ones where a member may be. It must not wait for the
// disk, and may retain further.
type Tell func(addresses map[uint64]string, further map[uint64][]string)

// Follow takes the addresses that this server uses, after each Update.
func (s *Search) Follow(self uint64, a *Addresses, tell Tell) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.self, s.own, s.state, s.version = self, a.ByMember(), a.known.Replicated, a.known.Version
	tell(s.addresses())
}

// Known returns the version of the newest members that the state or another server has.
func (s *Search) Known(other uint64) proto.Zxid {
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(s.version, s.heard[other].version)
}

// Learn takes the members that another server knows, as text, for the next Seek. They replace those
// that the same server has sent before.
func (s *Search) Learn(from uint64, text string) error {
	set, version, err := serverlist.ParseConfig(text)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.heard == nil {
		s.heard = make(map[uint64]heard)
	}
	if s.calm < keptFor { // otherwise the answer is late
		s.heard[from], s.changed = heard{set, version}, true
	}
	return nil
}

// keptFor is the number of calls of Seek without seeking after which learned members are forgotten:
// by then they are in this server's state, or were wrong.
const keptFor = 60

// Seek makes this server use the learned members. After keptFor calls without seeking, it forgets
// them.
func (s *Search) Seek(seeking bool, tell Tell) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calm++; seeking {
		s.calm = 0
	}
	if s.calm >= keptFor && len(s.heard) > 0 {
		s.heard, s.changed = nil, true
	}
	if s.changed {
		s.changed = false
		tell(s.addresses())
	}
}

// addresses returns the arguments for a Tell. An address of all interfaces is left out.
func (s *Search) addresses() (all map[uint64]string, further map[uint64][]string) {
	all, further = maps.Clone(s.own), make(map[uint64][]string)
	newer := []heard{{s.state, s.version}}
	for _, h := range s.heard {
		if h.version > s.version {
			newer = append(newer, h)
		}
	}
	sort.Slice(newer, func(i, j int) bool { return newer[i].version > newer[j].version })
	for _, h := range newer {
		for _, m := range h.set {
			address := m.PeerAddress()
			switch host, _ := netip.ParseAddr(m.Host); {
			case host.IsUnspecified() || m.ID == s.self:
			case all[m.ID] == "":
				all[m.ID] = address
			case address != all[m.ID] && !slices.Contains(further[m.ID], address):
				further[m.ID] = append(further[m.ID], address)
			}
		}
	}
	return all, further
}
