package members

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/gozkd/gozkd/internal/serverlist"
	"github.com/gozkd/gozkd/internal/testkit/vfstest"
	"github.com/gozkd/gozkd/proto"
)

// searcher is a Search, and what it last told consensus.
type searcher struct {
	Search
	told map[uint64]string
}

func (s *searcher) tell(addresses map[uint64]string) { s.told = addresses }

// A server that seeks the leader tries the newest addresses that it has heard of, for members that
// it does not reach. It leaves the others where they are, loses no member, and uses its own
// addresses again when the state is as new.
func TestSearch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		drawSet := func(what string) (set serverlist.Set) {
			for _, id := range rapid.SliceOfNDistinct(rapid.Uint64Range(1, 5), 1, 4, rapid.ID).Draw(t, what) {
				host := rapid.SampledFrom([]string{"a", "b", "0.0.0.0", "::"}).Draw(t, "host")
				set = set.With(serverlist.Member{ID: id, Host: host, PeerPort: rapid.IntRange(1, 2).Draw(t, "port"), ElectionPort: 3})
			}
			return set
		}
		configured := drawSet("configured")
		disk := vfstest.NewMem()
		var own *Addresses // without a search
		var s searcher
		open := func() {
			var err error
			if own, err = OpenAddresses(disk, ".", configured); err != nil {
				t.Fatal(err)
			}
			s = searcher{}
			s.Follow(own, s.tell)
		}
		open()
		sets := map[proto.Zxid]serverlist.Set{0: nil} // by version, as all members have them
		at := func(version proto.Zxid) serverlist.Set {
			if _, known := sets[version]; !known {
				sets[version] = drawSet(fmt.Sprint("version ", version))
			}
			return sets[version]
		}
		var state, known proto.Zxid // the versions of the state and of the newest members
		t.Repeat(map[string]func(*rapid.T){
			"state": func(t *rapid.T) {
				version := proto.Zxid(rapid.IntRange(0, 6).Draw(t, "version"))
				if err := own.Update(at(version), version, at(version)); err != nil {
					t.Fatal(err)
				}
				s.Follow(own, s.tell)
				state, known = max(state, version), max(known, version)
			},
			"learn": func(t *rapid.T) {
				version := proto.Zxid(rapid.IntRange(1, 6).Draw(t, "version"))
				if err := s.Learn(at(version).Text(version)); err != nil {
					t.Fatal(err)
				}
				known = max(known, version)
			},
			"restart": func(*rapid.T) {
				open()
				known = state
			},
			"seek": func(t *rapid.T) {
				reached := rapid.SliceOf(rapid.Uint64Range(1, 5)).Draw(t, "reached")
				before := s.told
				if got := s.Seek(true, reached, s.tell); got != known {
					t.Fatalf("the newest version is %v, want %v", got, known)
				}
				got := s.told
				for id, address := range before {
					if now := got[id]; slices.Contains(reached, id) && now != address {
						t.Fatalf("member %d is reached at %s, and moved to %s", id, address, now)
					}
				}
				for _, m := range at(known) {
					if named := m.Host >= "a"; named && !slices.Contains(reached, m.ID) && got[m.ID] != m.PeerAddress() {
						t.Fatalf("member %d is at %s, and sought at %s", m.ID, m.PeerAddress(), got[m.ID])
					}
				}
			},
			"found": func(t *rapid.T) {
				want := s.told // until the state is as new
				if s.Seek(false, nil, s.tell); known == state {
					want = own.ByMember()
				}
				if !maps.Equal(s.told, want) {
					t.Fatalf("found: %v, want %v", s.told, want)
				}
			},
			"": func(t *rapid.T) {
				for id, address := range own.ByMember() {
					if s.told[id] == "" {
						t.Fatalf("member %d at %s is lost", id, address)
					}
				}
			},
		})
	})
}

// What is no list of members teaches nothing. An address of all interfaces is not tried, also if
// nothing else is known.
func TestSearch_Nowhere(t *testing.T) {
	own, err := OpenAddresses(vfstest.NewMem(), "", parseSet(t, "server.1=a:1:2\nserver.2=b:1:2"))
	if err != nil {
		t.Fatal(err)
	}
	var s searcher
	s.Follow(own, s.tell)
	if err := s.Learn("server.1=nonsense\nversion=9"); err == nil || s.Seek(true, nil, s.tell) != 0 {
		t.Errorf("nonsense is learned: %v", err)
	}
	if err := s.Learn("server.1=0.0.0.0:1:2\nserver.2=[::]:1:2\nserver.3=0.0.0.0:1:2\nversion=9"); err != nil {
		t.Fatal(err)
	}
	if s.Seek(true, nil, s.tell); !maps.Equal(s.told, map[uint64]string{1: "a:1", 2: "b:1"}) {
		t.Errorf("the members are at %v", s.told)
	}
}
