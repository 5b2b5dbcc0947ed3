package members

import (
	"maps"
	"net/netip"
	"slices"
	"sync"

	"github.com/gozkd/gozkd/internal/serverlist"
	"github.com/gozkd/gozkd/proto"
)

// Search finds the leader for a server that has missed a reconfig: a server that is out of touch
// tries the other members at the addresses in the newest members that it has heard of, too. See ADR
// 7. The methods of a Search may be called from any goroutine. They call tell, which must not wait
// for the disk, with host:port by member if these have changed.
type Search struct {
	mu      sync.Mutex // guards the fields, and is held while tell is called, so that the newest addresses stay
	own     map[uint64]string
	newest  serverlist.Set // the newest members: those of the state, or as another server has them
	version proto.Zxid     // of newest
	applied proto.Zxid     // of the members that the state had
	sought  serverlist.Set // members that are tried where these lines say
}

// Follow takes the addresses that this server uses, after each Update.
func (s *Search) Follow(a *Addresses, tell func(map[uint64]string)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.own = a.ByMember()
	if a.version > s.applied {
		s.applied, s.sought = a.version, nil
	}
	if a.version >= s.version {
		s.newest, s.version = a.replicated, a.version
	}
	tell(s.addresses())
}

// Learn takes the text of the members that another server has.
func (s *Search) Learn(text string) error {
	set, version, err := serverlist.ParseConfig(text)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil && version > s.version {
		s.newest, s.version = set, version
	}
	return err
}

// Seek makes this server try the members at their newest addresses, except for those in reached. It
// returns the version of the newest members. Without seeking, Seek ends this as soon as the state
// has these members. An address of all interfaces leads to no other server.
func (s *Search) Seek(seeking bool, reached []uint64, tell func(map[uint64]string)) proto.Zxid {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.addresses()
	if !seeking && s.applied == s.version {
		s.sought = nil
	}
	for _, m := range s.newest {
		if host, _ := netip.ParseAddr(m.Host); seeking && !slices.Contains(reached, m.ID) && !host.IsUnspecified() {
			s.sought = s.sought.With(m)
		}
	}
	if after := s.addresses(); !maps.Equal(before, after) {
		tell(after)
	}
	return s.version
}

func (s *Search) addresses() map[uint64]string {
	all := maps.Clone(s.own)
	for _, m := range s.sought {
		all[m.ID] = m.PeerAddress()
	}
	return all
}
