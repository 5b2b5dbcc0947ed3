package gozk

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/compat/cases"
)

var errNotGone = errors.New("the znode is still there")

func (s *script) nodes() []work {
	return []work{
		{"create_get_set_delete", createGetSetDelete},
		{"create_flags", createFlags},
		{"create_errors", createErrors},
		{"container", container},
		{"ttl", ttl},
		{"protected_ephemeral_sequential", protectedEphemeralSequential},
		{"versions", versions},
		{"not_empty", notEmpty},
		{"children", children},
		{"large_data", largeData},
		{"null_and_empty_data", nullAndEmptyData},
		{"sync", syncPath},
		{"bad_paths", badPaths},
		{"concurrent_creates", concurrentCreates},
		{"incremental_reconfig", s.incrementalReconfig},
	}
}

func open() []zk.ACL { return zk.WorldACL(zk.PermAll) }

func createGetSetDelete(_ context.Context, c *zk.Conn, root string) {
	path := must.Get(c.Create(root+"/a", []byte("one"), 0, open()))
	data, stat := must.Get2(c.Get(path))
	if string(data) != "one" || stat.Version != 0 || stat.DataLength != 3 || stat.Czxid != stat.Mzxid || stat.Ctime != stat.Mtime {
		must.Failf("got %q %+v", data, stat)
	}
	stat = must.Get(c.Set(path, []byte("three"), 0))
	if stat.Version != 1 || stat.DataLength != 5 || stat.Mzxid <= stat.Czxid {
		must.Failf("set answered %+v", stat)
	}
	must.Do(c.Delete(path, 1))
	exists, _ := must.Get2(c.Exists(path))
	if exists {
		must.Do(errNotGone)
	}
}

func createFlags(_ context.Context, c *zk.Conn, root string) {
	for _, x := range []struct {
		flags     int32
		want      string
		ephemeral bool
	}{
		{0, "/n-", false},
		{zk.FlagEphemeral, "/e-", true},
		{zk.FlagSequence, "/s-0000000002", false},
		{zk.FlagEphemeral | zk.FlagSequence, "/es-0000000003", true},
	} {
		path := must.Get(c.Create(root+strings.TrimRight(x.want, "0123456789"), nil, x.flags, open()))
		cases.Expect("path", path, root+x.want)
		_, stat := must.Get2(c.Exists(path))
		if owned := stat.EphemeralOwner == c.SessionID(); owned != x.ephemeral || (!owned && stat.EphemeralOwner != 0) {
			must.Failf("%s is owned by 0x%x, the session is 0x%x", path, stat.EphemeralOwner, c.SessionID())
		}
	}
}

func createErrors(_ context.Context, c *zk.Conn, root string) {
	must.Get(c.Create(root+"/e", nil, zk.FlagEphemeral, open()))
	_, exists := c.Create(root+"/e", nil, 0, open())
	_, orphan := c.Create(root+"/no/parent", nil, 0, open())
	_, child := c.Create(root+"/e/child", nil, 0, open())
	_, noACL := c.Create(root+"/f", nil, 0, nil)
	want("existing", exists, zk.ErrNodeExists)
	want("no parent", orphan, zk.ErrNoNode)
	want("child of an ephemeral", child, zk.ErrNoChildrenForEphemerals)
	want("no ACL", noACL, zk.ErrInvalidACL)
}

func container(ctx context.Context, c *zk.Conn, root string) {
	path := must.Get(c.CreateContainer(root+"/box", nil, zk.FlagContainer, open()))
	must.Get(c.Create(path+"/child", nil, 0, open()))
	must.Do(c.Delete(path+"/child", -1))
	awaitGone(ctx, c, path)
}

func ttl(ctx context.Context, c *zk.Conn, root string) {
	path := must.Get(c.CreateTTL(root+"/brief", nil, zk.FlagTTL, open(), 100*time.Millisecond))
	long := must.Get(c.CreateTTL(root+"/long", nil, zk.FlagTTL, open(), time.Hour))
	awaitGone(ctx, c, path)
	exists, stat := must.Get2(c.Exists(long))
	// On the wire only a session owns a znode, whatever the server stores there.
	if !exists || stat.EphemeralOwner != 0 {
		must.Failf("%s: exists %t, %+v", long, exists, stat)
	}
}

func awaitGone(ctx context.Context, c *zk.Conn, path string) {
	for {
		exists, _, gone := must.Get3(c.ExistsW(path))
		if !exists {
			return
		}
		select {
		case e := <-gone:
			must.Do(e.Err)
		case <-ctx.Done():
			must.Failf("%s: %w", path, errNotGone)
		}
	}
}

func protectedEphemeralSequential(_ context.Context, c *zk.Conn, root string) {
	path := must.Get(c.CreateProtectedEphemeralSequential(root+"/lock-", nil, open()))
	names, _ := must.Get2(c.Children(root))
	if len(names) != 1 || root+"/"+names[0] != path || !strings.HasSuffix(path, "-lock-0000000000") || !strings.HasPrefix(names[0], "_c_") {
		must.Failf("created %s, children %q", path, names)
	}
}

func versions(_ context.Context, c *zk.Conn, root string) {
	_, noSet := c.Set(root+"/none", nil, -1)
	_, _, noGet := c.Get(root + "/none")
	_, _, noChildren := c.Children(root + "/none")
	_, badSet := c.Set(root, nil, 5)
	_, badACL := c.SetACL(root, open(), 5)
	want("set of nothing", noSet, zk.ErrNoNode)
	want("get of nothing", noGet, zk.ErrNoNode)
	want("children of nothing", noChildren, zk.ErrNoNode)
	want("delete of nothing", c.Delete(root+"/none", -1), zk.ErrNoNode)
	want("set", badSet, zk.ErrBadVersion)
	want("setACL", badACL, zk.ErrBadVersion)
	want("delete", c.Delete(root, 5), zk.ErrBadVersion)
}

func notEmpty(_ context.Context, c *zk.Conn, root string) {
	must.Get(c.Create(root+"/a", nil, 0, open()))
	want("delete", c.Delete(root, -1), zk.ErrNotEmpty)
}

func children(_ context.Context, c *zk.Conn, root string) {
	var created []string
	for i := range 100 {
		name := fmt.Sprintf("c%02d", i)
		must.Get(c.Create(root+"/"+name, nil, 0, open()))
		created = append(created, name)
	}
	names, stat := must.Get2(c.Children(root))
	slices.Sort(names)
	if !slices.Equal(names, created) || stat.NumChildren != 100 || stat.Cversion != 100 {
		must.Failf("got %q %+v", names, stat)
	}
}

func largeData(_ context.Context, c *zk.Conn, root string) {
	data := bytes.Repeat([]byte("0123456789abcdef"), 60<<10)
	must.Get(c.Create(root+"/a", data, 0, open()))
	got, stat := must.Get2(c.Get(root + "/a"))
	if !bytes.Equal(got, data) || int(stat.DataLength) != len(data) {
		must.Failf("got %d bytes, %+v", len(got), stat)
	}
}

func nullAndEmptyData(_ context.Context, c *zk.Conn, root string) {
	must.Get(c.Create(root+"/null", nil, 0, open()))
	must.Get(c.Create(root+"/empty", []byte{}, 0, open()))
	null, _ := must.Get2(c.Get(root + "/null"))
	empty, _ := must.Get2(c.Get(root + "/empty"))
	if null != nil || empty == nil || len(empty) != 0 {
		must.Failf("null came back as %#v, empty as %#v", null, empty)
	}
}

func syncPath(_ context.Context, c *zk.Conn, root string) {
	cases.Expect("path", must.Get(c.Sync(root)), root)
}

func badPaths(_ context.Context, c *zk.Conn, root string) {
	for _, p := range []string{"", "relative", root + "/", root + "//a", root + "/./a", root + "/../a", root + "/\x01"} {
		_, err := c.Create(p, nil, 0, open())
		want(fmt.Sprintf("create %q", p), err, zk.ErrInvalidPath)
	}
}

// concurrentCreates lets many goroutines share a connection: their requests are pipelined.
func concurrentCreates(_ context.Context, c *zk.Conn, root string) {
	const goroutines, each = 20, 50
	paths := make(chan string, goroutines*each) // room for all, so that no sender waits
	create := func() {
		for range each {
			paths <- must.Get(c.Create(root+"/n-", nil, zk.FlagSequence, open()))
		}
	}
	must.All(slices.Repeat([]func(){create}, goroutines)...)
	close(paths)
	seen := map[string]bool{}
	for p := range paths {
		seen[p] = true
	}
	for i := range goroutines * each {
		if p := fmt.Sprintf("%s/n-%010d", root, i); !seen[p] {
			must.Failf("%s was given to nobody", p)
		}
	}
}

// incrementalReconfig is refused by a standalone server; the connection must survive it.
func (s *script) incrementalReconfig(_ context.Context, c *zk.Conn, root string) {
	must.Do(c.AddAuth("digest", []byte("super:"+s.superPassword)))
	if _, err := c.IncrementalReconfig([]string{"server.100=127.0.0.1:1:2;3"}, nil, -1); err == nil {
		must.Failf("a standalone server accepted a reconfig")
	}
	must.Get2(c.Exists(root))
}

func (s *script) multis() []work {
	return []work{
		{"multi_commits", multiCommits},
		{"multi_rolls_back", multiRollsBack},
		{"multi_checks_a_version", multiChecks},
		{"multi_creates_every_kind", multiKinds},
	}
}

func multiCommits(_ context.Context, c *zk.Conn, root string) {
	r := must.Get(c.Multi(
		&zk.CreateRequest{Path: root + "/a", Data: []byte("1"), Acl: open()},
		&zk.SetDataRequest{Path: root + "/a", Data: []byte("2"), Version: 0},
		&zk.CreateRequest{Path: root + "/a/b-", Acl: open(), Flags: zk.FlagSequence},
		&zk.CheckVersionRequest{Path: root + "/a", Version: 1},
		&zk.CreateRequest{Path: root + "/gone", Acl: open()},
		&zk.DeleteRequest{Path: root + "/gone", Version: -1},
	))
	if len(r) != 6 || r[0].String != root+"/a" || r[1].Stat == nil || r[1].Stat.Version != 1 || r[2].String != root+"/a/b-0000000000" {
		must.Failf("got %+v", r)
	}
	data, stat := must.Get2(c.Get(root + "/a"))
	if string(data) != "2" || stat.NumChildren != 1 || stat.Czxid != stat.Mzxid || stat.Czxid != stat.Pzxid {
		must.Failf("got %q %+v", data, stat)
	}
}

func multiRollsBack(_ context.Context, c *zk.Conn, root string) {
	r, err := c.Multi(
		&zk.CreateRequest{Path: root + "/a", Acl: open()},
		&zk.DeleteRequest{Path: root + "/none", Version: -1},
		&zk.CreateRequest{Path: root + "/b", Acl: open()},
	)
	want("multi", err, zk.ErrNoNode)
	if len(r) != 3 || r[0].Error != nil || !errors.Is(r[1].Error, zk.ErrNoNode) || r[2].Error == nil {
		must.Failf("got %+v", r)
	}
	names, _ := must.Get2(c.Children(root))
	if len(names) != 0 {
		must.Failf("left behind: %q", names)
	}
}

func multiChecks(_ context.Context, c *zk.Conn, root string) {
	_, err := c.Multi(
		&zk.CheckVersionRequest{Path: root, Version: 9},
		&zk.CreateRequest{Path: root + "/a", Acl: open()},
	)
	want("multi", err, zk.ErrBadVersion)
	exists, _ := must.Get2(c.Exists(root + "/a"))
	cases.Expect("exists", exists, false)
}

func multiKinds(_ context.Context, c *zk.Conn, root string) {
	r := must.Get(c.Multi(
		&zk.CreateRequest{Path: root + "/e", Acl: open(), Flags: zk.FlagEphemeral},
		&zk.CreateRequest{Path: root + "/s-", Acl: open(), Flags: zk.FlagSequence},
		&zk.CreateRequest{Path: root + "/s-", Acl: open(), Flags: zk.FlagSequence | zk.FlagEphemeral},
	))
	if r[1].String != root+"/s-0000000001" || r[2].String != root+"/s-0000000002" {
		must.Failf("got %+v", r)
	}
	for path, ephemeral := range map[string]bool{r[0].String: true, r[1].String: false, r[2].String: true} {
		_, stat := must.Get2(c.Exists(path))
		if (stat.EphemeralOwner == c.SessionID()) != ephemeral {
			must.Failf("%s: %+v", path, stat)
		}
	}
}
