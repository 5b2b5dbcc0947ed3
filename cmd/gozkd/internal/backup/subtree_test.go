package backup

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server"
)

// dump returns the data and ACLs of all znodes that are not ephemeral.
func dump(tree *datatree.Tree) map[string]string {
	all := make(map[string]string)
	tree.Walk("/", func(z proto.Znode) bool {
		if z.Stat.EphemeralOwner == 0 {
			all[z.Path] = fmt.Sprintf("%q %v %v", z.Data, z.ACL, z.Mode)
		}
		return true
	})
	return all
}

// A subtree of a backup returns to a running server, at its place and at another; nothing else
// changes.
func TestRestore_Subtree(t *testing.T) {
	dir := t.TempDir()
	file, data := filepath.Join(dir, "backup.db"), filepath.Join(dir, "data")
	s, stop := serve(t, server.Config{Dir: data})
	fill(t, s, 12)
	stop()
	mustRun(t, Backup, "--from", data, file)
	want := dump(mustRead(t, file).tree)

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s, stop = serve(t, server.Config{Dir: data, Listener: listener})
	c, _ := connect(t, s)
	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(nil, c.Delete("/app/7", -1))
	must(c.Set("/app/8", []byte("wrong"), -1))
	must(c.Create("/app/wrong", nil, 0, zk.WorldACL(zk.PermAll)))
	must(c.Create("/else", nil, 0, zk.WorldACL(zk.PermAll)))
	restore := func(more ...string) string {
		return mustRun(t, Restore, append([]string{file, "--subtree", "/app", "--to", listener.Addr().String()}, more...)...)
	}
	for _, line := range []string{"create      1\n            /app/7\n", "data        1\n            /app/8\n", "delete      1\n            /app/wrong\n", "left out    12 ephemeral znodes"} {
		if out := restore("--dry-run"); !strings.Contains(out, line) {
			t.Errorf("%q is not in\n%s", line, out)
		}
	}
	status, _, stderr := run(t, Restore, file, "--subtree=/app", "--to", listener.Addr().String())
	if status != 1 || !strings.Contains(stderr, "nothing was changed: answer yes, or add --yes") {
		t.Errorf("%d %s", status, stderr)
	}
	if out := restore("--yes"); !strings.Contains(out, "created 1 of 1, data set 1 of 1, deleted 1 of 1") {
		t.Error(out)
	}
	if out := restore(); !strings.Contains(out, "nothing to change") {
		t.Error(out)
	}
	restore("--as", "/copy", "--yes")
	stop()
	got := dump(mustRead(t, data).tree)
	for path, znode := range want {
		if got[path] != znode {
			t.Errorf("%s is %s, want %s", path, got[path], znode)
		}
		if below, ok := strings.CutPrefix(path, "/app"); ok && got["/copy"+below] != znode {
			t.Errorf("/copy%s is %s, want %s", below, got["/copy"+below], znode)
		}
		delete(got, path)
		delete(got, "/copy"+strings.TrimPrefix(path, "/app"))
	}
	if _, ok := got["/else"]; len(got) != 1 || !ok {
		t.Errorf("left: %v", got)
	}
}

func TestRestore_SubtreeRefuses(t *testing.T) {
	dir := t.TempDir()
	data, empty := filepath.Join(dir, "data"), filepath.Join(dir, "empty")
	s, stop := serve(t, server.Config{Dir: data})
	fill(t, s, 1)
	stop()
	if err := os.WriteFile(empty, []byte("super\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args string
		want string
	}{
		{"--subtree /a --to localhost:1", "name one SOURCE"},
		{data + " --subtree /a", "--to is missing"},
		{data + " --subtree a --to localhost:1", `--subtree and --as: "a"`},
		{data + " --subtree /a --as /b/ --to localhost:1", `--subtree and --as: "/b/"`},
		{data + " --subtree /zookeeper/quota --to localhost:1", "/zookeeper belongs to the ensemble"},
		{data + " --subtree /a --as / --to localhost:1", "--as / is for --subtree / only"},
		{data + " --subtree /a --to localhost:1 --at 0x1", "--at and --ensemble-id are for an archive"},
		{data + " --subtree /a --to localhost:1 --auth-file " + empty, "holds no credential"},
		{data + " --subtree /none --to localhost:1", "has no znode /none at zxid"},
	} {
		if status, _, stderr := run(t, Restore, strings.Fields(c.args)...); status == 0 || !strings.Contains(stderr, c.want) {
			t.Errorf("%s: %d %s", c.args, status, stderr)
		}
	}
}
