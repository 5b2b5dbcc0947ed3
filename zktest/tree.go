package zktest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gozkd/gozkd/internal/cluster"
	"github.com/gozkd/gozkd/server"
)

// Load creates znodes with this data, and missing znodes above them, in one transaction. A znode
// that exists gets the data. New znodes are persistent with an open ACL.
func (s *Service) Load(znodes map[string]string) {
	s.t.Helper()
	data := make(map[string][]byte, len(znodes))
	for path, text := range znodes {
		data[path] = []byte(text)
	}
	s.do(func(ctx context.Context) error { return s.cluster.Load(ctx, data) })
}

// LoadTxtar is Load for a txtar archive whose file names are paths. The final newline of a file is
// not part of the data.
//
//	-- /app/config --
//	color=green
//	-- /app/workers --
func (s *Service) LoadTxtar(archive string) {
	s.t.Helper()
	znodes := make(map[string]string)
	path := "" // until the first file, which a comment may precede
	for line := range strings.Lines(archive) {
		if name, ok := txtarName(line); ok {
			path = name
			if _, twice := znodes[path]; twice {
				s.t.Fatalf("zktest: load: the archive contains %s twice", path)
			}
			znodes[path] = ""
		} else if path != "" {
			znodes[path] += line
		}
	}
	if len(znodes) == 0 {
		s.t.Fatalf("zktest: load: the archive has no files; a file begins with a line like -- /path --")
	}
	for path, data := range znodes {
		znodes[path] = strings.TrimSuffix(data, "\n")
	}
	s.Load(znodes)
}

// txtarName returns the name of the file that begins with a line of a txtar archive, if one does.
func txtarName(line string) (name string, ok bool) {
	line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
	if name, ok = strings.CutPrefix(line, "-- "); ok {
		name, ok = strings.CutSuffix(name, " --")
	}
	name = strings.TrimSpace(name)
	return name, ok && name != ""
}

// Tree returns the data of the znode at path and all below it, by path, without /zookeeper. Without
// a znode at path the map is empty.
func (s *Service) Tree(path string) map[string]string {
	s.t.Helper()
	tree := make(map[string]string)
	s.walk(path, func(z server.Znode) bool {
		if z.Path != "/zookeeper" && !strings.HasPrefix(z.Path, "/zookeeper/") {
			tree[z.Path] = string(z.Data)
		}
		return true
	})
	return tree
}

// walk calls f for the znode at path and those below, and reports whether there is a znode at path.
func (s *Service) walk(path string, f func(server.Znode) bool) (found bool) {
	s.t.Helper()
	ctx, cancel := s.context()
	defer cancel()
	err := s.cluster.Walk(ctx, path, f)
	if errors.Is(err, cluster.ErrNotFound) {
		return false
	}
	s.must(err)
	return true
}

// Dump describes members, sessions and all znodes in text.
func (s *Service) Dump() string {
	var b strings.Builder
	s.cluster.Dump(&b)
	return b.String()
}

// Snapshot is the znodes at one moment.
type Snapshot struct{ snapshot cluster.Snapshot }

// Snapshot returns the present znodes for Rewind.
func (s *Service) Snapshot() (znodes Snapshot) {
	s.t.Helper()
	s.do(func(ctx context.Context) (err error) {
		znodes.snapshot, err = s.cluster.Snapshot(ctx)
		return err
	})
	return znodes
}

// Rewind restores the znodes of a snapshot: data, ACLs, ephemerals, containers and times to live.
// Clients stay connected, and their watches fire for what changes. A znode that did not change
// since the snapshot keeps its versions and zxids; the others get new versions and zxids, as if a
// client had written them, and sequence numbers go on. Sessions stay as they are: ephemerals whose
// session has ended do not come back, and ephemerals of newer sessions are deleted although the
// sessions live on.
func (s *Service) Rewind(znodes Snapshot) {
	s.t.Helper()
	s.do(func(ctx context.Context) error { return s.cluster.Rewind(ctx, znodes.snapshot) })
}

// Znode returns the znode at path, or nil if there is none.
func (s *Service) Znode(path string) (found *server.Znode) {
	s.t.Helper()
	s.walk(path, func(z server.Znode) bool {
		found = &z
		return false
	})
	return found
}

// AssertData reports an error if the znode at path is missing or has other data.
func (s *Service) AssertData(path, want string) {
	s.t.Helper()
	switch z := s.Znode(path); {
	case z == nil:
		s.t.Errorf("zktest: there is no znode %s, want a znode with data %q", path, want)
	case string(z.Data) != want:
		s.t.Errorf("zktest: znode %s has data %q, want %q", path, z.Data, want)
	}
}

// AssertExists reports an error for each path without a znode.
func (s *Service) AssertExists(paths ...string) {
	s.t.Helper()
	for _, path := range paths {
		if s.Znode(path) == nil {
			s.t.Errorf("zktest: there is no znode %s", path)
		}
	}
}

// AssertMissing reports an error for each path with a znode.
func (s *Service) AssertMissing(paths ...string) {
	s.t.Helper()
	for _, path := range paths {
		if z := s.Znode(path); z != nil {
			s.t.Errorf("zktest: there is a znode %s, with data %q", path, z.Data)
		}
	}
}

// AssertChildren reports an error if the znode at path is missing or its children are not these, in
// any order.
func (s *Service) AssertChildren(path string, names ...string) {
	s.t.Helper()
	var got []string
	below := strings.TrimSuffix(path, "/") + "/"
	found := s.walk(path, func(z server.Znode) bool {
		if name, ok := strings.CutPrefix(z.Path, below); ok && name != "" && !strings.Contains(name, "/") {
			got = append(got, name)
		}
		return true
	})
	want := slices.Sorted(slices.Values(names))
	switch {
	case !found:
		s.t.Errorf("zktest: there is no znode %s, want a znode with the children %q", path, want)
	case !slices.Equal(got, want):
		s.t.Errorf("zktest: znode %s has the children %q, want %q", path, got, want)
	}
}

// AssertOwner reports an error if the znode at path is missing or no ephemeral of that session.
func (s *Service) AssertOwner(path string, session int64) {
	s.t.Helper()
	switch z := s.Znode(path); {
	case z == nil:
		s.t.Errorf("zktest: there is no znode %s, want an ephemeral of session 0x%x", path, uint64(session))
	case int64(z.Stat.EphemeralOwner) != session:
		s.t.Errorf("zktest: znode %s is owned by session 0x%x, want session 0x%x", path, uint64(z.Stat.EphemeralOwner), uint64(session))
	}
}

// Await waits until cond returns true for the znodes at path and below, in the form that Tree
// returns. Without a znode at path, cond gets an empty map.
func (s *Service) Await(path string, cond func(tree map[string]string) bool) {
	s.t.Helper()
	s.eventually(func() error {
		tree := s.Tree(path)
		if cond(tree) {
			return nil
		}
		return fmt.Errorf("the condition does not hold for the znodes below %s: %q", path, slices.Sorted(maps.Keys(tree)))
	})
}

// AwaitExists waits until there is a znode at path.
func (s *Service) AwaitExists(path string) {
	s.t.Helper()
	s.eventually(func() error {
		if s.Znode(path) == nil {
			return errors.New("there is no znode " + path)
		}
		return nil
	})
}

// AwaitMissing waits until there is no znode at path.
func (s *Service) AwaitMissing(path string) {
	s.t.Helper()
	s.eventually(func() error {
		if s.Znode(path) != nil {
			return errors.New("there is a znode " + path)
		}
		return nil
	})
}
