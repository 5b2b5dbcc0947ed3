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

func createGetSetDelete(_ context.Context, c *zk.Conn, root string) error {
	path, err := c.Create(root+"/a", []byte("one"), 0, open())
	if err != nil {
		return err
	}
	data, stat, err := c.Get(path)
	if err != nil {
		return err
	}
	if string(data) != "one" || stat.Version != 0 || stat.DataLength != 3 || stat.Czxid != stat.Mzxid || stat.Ctime != stat.Mtime {
		return fmt.Errorf("got %q %+v", data, stat)
	}
	if stat, err = c.Set(path, []byte("three"), 0); err != nil {
		return err
	}
	if stat.Version != 1 || stat.DataLength != 5 || stat.Mzxid <= stat.Czxid {
		return fmt.Errorf("set answered %+v", stat)
	}
	if err := c.Delete(path, 1); err != nil {
		return err
	}
	exists, _, err := c.Exists(path)
	if err != nil {
		return err
	}
	if exists {
		return errNotGone
	}
	return nil
}

func createFlags(_ context.Context, c *zk.Conn, root string) error {
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
		path, err := c.Create(root+strings.TrimRight(x.want, "0123456789"), nil, x.flags, open())
		if err != nil {
			return err
		}
		if err := cases.Expect("path", path, root+x.want); err != nil {
			return err
		}
		_, stat, err := c.Exists(path)
		if err != nil {
			return err
		}
		if owned := stat.EphemeralOwner == c.SessionID(); owned != x.ephemeral || (!owned && stat.EphemeralOwner != 0) {
			return fmt.Errorf("%s is owned by 0x%x, the session is 0x%x", path, stat.EphemeralOwner, c.SessionID())
		}
	}
	return nil
}

func createErrors(_ context.Context, c *zk.Conn, root string) error {
	if _, err := c.Create(root+"/e", nil, zk.FlagEphemeral, open()); err != nil {
		return err
	}
	_, exists := c.Create(root+"/e", nil, 0, open())
	_, orphan := c.Create(root+"/no/parent", nil, 0, open())
	_, child := c.Create(root+"/e/child", nil, 0, open())
	_, noACL := c.Create(root+"/f", nil, 0, nil)
	return errors.Join(want("existing", exists, zk.ErrNodeExists), want("no parent", orphan, zk.ErrNoNode),
		want("child of an ephemeral", child, zk.ErrNoChildrenForEphemerals), want("no ACL", noACL, zk.ErrInvalidACL))
}

func container(ctx context.Context, c *zk.Conn, root string) error {
	path, err := c.CreateContainer(root+"/box", nil, zk.FlagContainer, open())
	if err != nil {
		return err
	}
	if _, err := c.Create(path+"/child", nil, 0, open()); err != nil {
		return err
	}
	if err := c.Delete(path+"/child", -1); err != nil {
		return err
	}
	return awaitGone(ctx, c, path)
}

func ttl(ctx context.Context, c *zk.Conn, root string) error {
	path, err := c.CreateTTL(root+"/brief", nil, zk.FlagTTL, open(), 100*time.Millisecond)
	if err != nil {
		return err
	}
	long, err := c.CreateTTL(root+"/long", nil, zk.FlagTTL, open(), time.Hour)
	if err != nil {
		return err
	}
	if err := awaitGone(ctx, c, path); err != nil {
		return err
	}
	exists, stat, err := c.Exists(long)
	if err != nil {
		return err
	}
	// On the wire only a session owns a znode, whatever the server stores there.
	if !exists || stat.EphemeralOwner != 0 {
		return fmt.Errorf("%s: exists %t, %+v", long, exists, stat)
	}
	return nil
}

func awaitGone(ctx context.Context, c *zk.Conn, path string) error {
	for {
		exists, _, gone, err := c.ExistsW(path)
		if err != nil || !exists {
			return err
		}
		select {
		case e := <-gone:
			if e.Err != nil {
				return e.Err
			}
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", path, errNotGone)
		}
	}
}

func protectedEphemeralSequential(_ context.Context, c *zk.Conn, root string) error {
	path, err := c.CreateProtectedEphemeralSequential(root+"/lock-", nil, open())
	if err != nil {
		return err
	}
	names, _, err := c.Children(root)
	if err != nil {
		return err
	}
	if len(names) != 1 || root+"/"+names[0] != path || !strings.HasSuffix(path, "-lock-0000000000") || !strings.HasPrefix(names[0], "_c_") {
		return fmt.Errorf("created %s, children %q", path, names)
	}
	return nil
}

func versions(_ context.Context, c *zk.Conn, root string) error {
	_, noSet := c.Set(root+"/none", nil, -1)
	_, _, noGet := c.Get(root + "/none")
	_, _, noChildren := c.Children(root + "/none")
	_, badSet := c.Set(root, nil, 5)
	_, badACL := c.SetACL(root, open(), 5)
	return errors.Join(want("set of nothing", noSet, zk.ErrNoNode), want("get of nothing", noGet, zk.ErrNoNode),
		want("children of nothing", noChildren, zk.ErrNoNode), want("delete of nothing", c.Delete(root+"/none", -1), zk.ErrNoNode),
		want("set", badSet, zk.ErrBadVersion), want("setACL", badACL, zk.ErrBadVersion),
		want("delete", c.Delete(root, 5), zk.ErrBadVersion))
}

func notEmpty(_ context.Context, c *zk.Conn, root string) error {
	if _, err := c.Create(root+"/a", nil, 0, open()); err != nil {
		return err
	}
	return want("delete", c.Delete(root, -1), zk.ErrNotEmpty)
}

func children(_ context.Context, c *zk.Conn, root string) error {
	var created []string
	for i := range 100 {
		name := fmt.Sprintf("c%02d", i)
		if _, err := c.Create(root+"/"+name, nil, 0, open()); err != nil {
			return err
		}
		created = append(created, name)
	}
	names, stat, err := c.Children(root)
	if err != nil {
		return err
	}
	slices.Sort(names)
	if !slices.Equal(names, created) || stat.NumChildren != 100 || stat.Cversion != 100 {
		return fmt.Errorf("got %q %+v", names, stat)
	}
	return nil
}

func largeData(_ context.Context, c *zk.Conn, root string) error {
	data := bytes.Repeat([]byte("0123456789abcdef"), 60<<10)
	if _, err := c.Create(root+"/a", data, 0, open()); err != nil {
		return err
	}
	got, stat, err := c.Get(root + "/a")
	if err != nil {
		return err
	}
	if !bytes.Equal(got, data) || int(stat.DataLength) != len(data) {
		return fmt.Errorf("got %d bytes, %+v", len(got), stat)
	}
	return nil
}

func nullAndEmptyData(_ context.Context, c *zk.Conn, root string) error {
	if _, err := c.Create(root+"/null", nil, 0, open()); err != nil {
		return err
	}
	if _, err := c.Create(root+"/empty", []byte{}, 0, open()); err != nil {
		return err
	}
	null, _, err := c.Get(root + "/null")
	if err != nil {
		return err
	}
	empty, _, err := c.Get(root + "/empty")
	if err != nil {
		return err
	}
	if null != nil || empty == nil || len(empty) != 0 {
		return fmt.Errorf("null came back as %#v, empty as %#v", null, empty)
	}
	return nil
}

func syncPath(_ context.Context, c *zk.Conn, root string) error {
	path, err := c.Sync(root)
	if err != nil {
		return err
	}
	return cases.Expect("path", path, root)
}

func badPaths(_ context.Context, c *zk.Conn, root string) error {
	var errs []error
	for _, p := range []string{"", "relative", root + "/", root + "//a", root + "/./a", root + "/../a", root + "/\x01"} {
		_, err := c.Create(p, nil, 0, open())
		errs = append(errs, want(fmt.Sprintf("create %q", p), err, zk.ErrInvalidPath))
	}
	return errors.Join(errs...)
}

// concurrentCreates lets many goroutines share a connection: their requests are pipelined.
func concurrentCreates(_ context.Context, c *zk.Conn, root string) error {
	const goroutines, each = 20, 50
	paths := make(chan string, goroutines*each) // room for all, so that no sender waits
	errs := make(chan error, goroutines)        // one per goroutine
	for range goroutines {
		// Ends after its creates; the loop over errs waits for it.
		go func() {
			for range each {
				p, err := c.Create(root+"/n-", nil, zk.FlagSequence, open())
				if err != nil {
					errs <- err
					return
				}
				paths <- p
			}
			errs <- nil
		}()
	}
	for range goroutines {
		if err := <-errs; err != nil {
			return err
		}
	}
	close(paths)
	seen := map[string]bool{}
	for p := range paths {
		seen[p] = true
	}
	for i := range goroutines * each {
		if p := fmt.Sprintf("%s/n-%010d", root, i); !seen[p] {
			return fmt.Errorf("%s was given to nobody", p)
		}
	}
	return nil
}

// incrementalReconfig is refused by a standalone server; the connection must survive it.
func (s *script) incrementalReconfig(_ context.Context, c *zk.Conn, root string) error {
	if err := c.AddAuth("digest", []byte("super:"+s.superPassword)); err != nil {
		return err
	}
	if _, err := c.IncrementalReconfig([]string{"server.100=127.0.0.1:1:2;3"}, nil, -1); err == nil {
		return errors.New("a standalone server accepted a reconfig")
	}
	_, _, err := c.Exists(root)
	return err
}
