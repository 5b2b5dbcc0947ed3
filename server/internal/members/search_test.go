package members

import (
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
	told    map[uint64]string
	further map[uint64][]string
}

func (s *searcher) tell(addresses map[uint64]string, further map[uint64][]string) {
	s.told, s.further = addresses, further
}

// This server tries the members first where it would without a search, and then where the state
// and, while it seeks, each of the others says that they are. What others say counts only until the
// state is as new, and only until this server has been in touch for long; no answer hides another.
func TestSearch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		drawSet := func(what string) (set serverlist.Set) {
			for _, id := range rapid.SliceOfNDistinct(rapid.Uint64Range(1, 5), 1, 4, rapid.ID).Draw(t, what) {
				host := rapid.SampledFrom([]string{"a", "b", "0.0.0.0", "::"}).Draw(t, "host")
				set = set.With(serverlist.Member{ID: id, Host: host, PeerPort: rapid.IntRange(1, 2).Draw(t, "port"), ElectionPort: 3})
			}
			return set
		}
		const self = 1
		configured := drawSet("configured")
		disk := vfstest.NewMem()
		var own *Addresses // without a search
		var s searcher
		said := make(map[uint64]heard)                // by the other servers, and not forgotten
		applied, tried := heard{}, said               // the members of the state, and a copy of said at the last Seek
		sets := map[proto.Zxid]serverlist.Set{0: nil} // of the state, by version
		calm := 0                                     // calls of Seek without seeking
		follow := func() {
			s.Follow(self, own, s.tell)
			tried = maps.Clone(said)
		}
		open := func() {
			var err error
			if own, err = OpenAddresses(disk, ".", configured); err != nil {
				t.Fatal(err)
			}
			s = searcher{}
			clear(said)
			calm = 0
			follow()
		}
		open()
		t.Repeat(map[string]func(*rapid.T){
			"state": func(t *rapid.T) {
				version := proto.Zxid(rapid.IntRange(0, 6).Draw(t, "version"))
				if _, known := sets[version]; !known {
					sets[version] = drawSet("state")
				}
				if err := own.Update(sets[version], version, sets[version]); err != nil {
					t.Fatal(err)
				}
				if version > applied.version {
					applied = heard{sets[version], version}
				}
				follow()
			},
			"learn": func(t *rapid.T) {
				from, h := rapid.Uint64Range(2, 4).Draw(t, "from"), heard{drawSet("other"), proto.Zxid(rapid.IntRange(1, 9).Draw(t, "version"))}
				if err := s.Learn(from, h.set.Text(h.version)); err != nil {
					t.Fatal(err)
				}
				if calm < keptFor {
					said[from] = h
				}
				if got := s.Known(from); got != max(applied.version, said[from].version) {
					t.Fatalf("%v is known from %d", got, from)
				}
			},
			"restart": func(*rapid.T) { open() },
			"seek": func(*rapid.T) {
				s.Seek(true, s.tell)
				calm, tried = 0, maps.Clone(said)
			},
			"found": func(t *rapid.T) {
				for range rapid.SampledFrom([]int{1, 2, keptFor - 1, keptFor}).Draw(t, "calls") {
					s.Seek(false, s.tell)
					calm++
				}
				if calm >= keptFor {
					clear(said)
				}
				tried = maps.Clone(said)
			},
			"": func(t *rapid.T) {
				places := map[uint64][]string{} // where others than this server's own lines have them
				newer := []heard{applied}
				for _, h := range tried {
					if h.version > applied.version {
						newer = append(newer, h)
					}
				}
				for _, h := range newer {
					for _, m := range h.set {
						if named := m.Host >= "a"; named && m.ID != self {
							places[m.ID] = append(places[m.ID], m.PeerAddress())
						}
					}
				}
				first := own.ByMember()
				for id, address := range s.told {
					if all := append(places[id], first[id]); first[id] != "" && address != first[id] || !slices.Contains(all, address) {
						t.Fatalf("member %d is tried at %s, which is none of %v, or not the first", id, address, all)
					}
					got := slices.Sorted(slices.Values(append(s.further[id], address)))
					if want := slices.Compact(slices.Sorted(slices.Values(append(places[id], address)))); !slices.Equal(got, want) {
						t.Fatalf("member %d is tried at %v, want %v", id, got, want)
					}
				}
				for id := range places {
					if s.told[id] == "" {
						t.Fatalf("member %d is not tried", id)
					}
				}
				if own.Replicated() != (applied.version > 0) {
					t.Fatalf("the state had members %v, version %v", own.Replicated(), applied.version)
				}
			},
		})
	})
}

// What is no list of members teaches nothing. An address of all interfaces is not tried, also if
// nothing else is known. The newest members come first. What has not changed is not told again.
func TestSearch_Nowhere(t *testing.T) {
	own, err := OpenAddresses(vfstest.NewMem(), "", parseSet(t, "server.1=a:1:2\nserver.2=b:1:2"))
	if err != nil {
		t.Fatal(err)
	}
	var s searcher
	s.Follow(1, own, s.tell)
	if err := s.Learn(2, "server.1=nonsense\nversion=9"); err == nil || s.Known(2) != 0 {
		t.Errorf("nonsense is learned: %v", err)
	}
	for from, text := range map[uint64]string{
		2: "server.1=0.0.0.0:1:2\nserver.2=[::]:1:2\nserver.3=0.0.0.0:1:2\nversion=9",
		4: "server.2=b:2:9\nversion=7", 5: "server.2=b:3:9\nversion=8",
	} {
		if err := s.Learn(from, text); err != nil {
			t.Fatal(err)
		}
	}
	s.Seek(true, s.tell)
	if !maps.Equal(s.told, map[uint64]string{1: "a:1", 2: "b:1"}) || !slices.Equal(s.further[2], []string{"b:3", "b:2"}) || len(s.further) != 1 {
		t.Errorf("the members are at %v %v", s.told, s.further)
	}
	for i := range keptFor + 2 { // once for each change: the last call but one forgets
		s.told = nil
		if s.Seek(i == 0, s.tell); (s.told != nil) != (i == keptFor) {
			t.Errorf("Seek %d tells where the members are: %v", i, s.told)
		}
	}
}
