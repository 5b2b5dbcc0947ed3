package inspect

import (
	"hash/adler32"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/cli"
	"github.com/gozkd/gozkd/internal/testkit/zkrecord"
	"github.com/gozkd/gozkd/internal/zkfiles"
	"github.com/gozkd/gozkd/proto"
)

// writeZooKeeper writes a dataDir of ZooKeeper without a snapshot's trailer, and with a torn log.
func writeZooKeeper(t *testing.T) (dir, log string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "version-2")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	b := zkfiles.AppendLogHeader(nil)
	for i, x := range []zkfiles.Txn{
		{Op: proto.OpCreateSession, TimeoutMs: 4000},
		{Op: proto.OpCreate, Path: "/a", Data: []byte("text"), ACL: proto.OpenACL(), ParentCversion: 1},
		{Op: proto.OpCreateTTL, Path: "/t", TTLMs: 5, ACL: proto.OpenACL(), ParentCversion: 2},
		{Op: proto.OpMulti, Ops: []zkfiles.Txn{
			{Op: proto.OpCreate, Path: "/a/never", ACL: proto.OpenACL(), ParentCversion: 1}, {Op: proto.OpError, Err: proto.ErrNoNode},
		}},
		{Op: proto.OpSetACL, Path: "/a", ACL: []proto.ACL{{Perms: 1, ID: proto.ID{Scheme: "digest", ID: "bob:hash"}}}, Version: 1},
		{Op: proto.OpError, Err: proto.ErrNodeExists},
		{Op: proto.OpCreate, Path: "/a/e", Ephemeral: true, ACL: proto.OpenACL(), ParentCversion: 1},
	} {
		b = zkrecord.AppendToLog(b, &zkfiles.Record{Session: 0x100, Cxid: int32(i), Zxid: proto.Zxid(i + 1), TimeMs: 1_700_000_000_000, Txn: x})
	}
	log = filepath.Join(dir, "log.1")
	if err := os.WriteFile(log, append(b, 0, 0, 0, 0, 1), 0o644); err != nil {
		t.Fatal(err)
	}
	snapshot := zkfiles.AppendSnapshotHeader(nil, nil, nil)
	root := zkfiles.Znode{Path: "/", Data: []byte{}, ACL: zkfiles.OpenKey}
	snapshot = zkfiles.AppendTreeEnd(root.Append(snapshot))
	snapshot = zkfiles.AppendSeal(snapshot, adler32.Checksum(snapshot))
	if err := os.WriteFile(filepath.Join(dir, "snapshot.0"), snapshot, 0o644); err != nil {
		t.Fatal(err)
	}
	return filepath.Dir(dir), log
}

func TestInspect_ZooKeeper(t *testing.T) {
	dir, log := writeZooKeeper(t)
	for _, c := range []struct {
		main cli.Main
		args []string
		want []string // parts of the output, in order
		not  string
	}{
		{Main, []string{log}, []string{
			"incomplete record at byte", "0x1 ", "0x100", "ok     createSession", "create /a 4 bytes", "createTTL /t ttl", "FAILED multi (no node (-101))",
			"FAILED   create /a/never", "setACL /a version 1 to digest:bob:r", "FAILED error (node exists (-110))", "create /a/e ephemeral",
		}, "hash"},
		{Main, []string{"--log", "--from", "0x3", "--path", "/t", dir}, []string{"0x3 "}, "create /a"},
		{Main, []string{"--log", "-output", "json", "--data", dir}, []string{`"zxid":"0x2"`, `"cxid":1`, `"path":"/a"`, `"data":"dGV4dA=="`}, ""},
		{Main, []string{dir}, []string{"incomplete record", "/ persistent", "/a persistent 4 bytes", "/a/e ephemeral", "session 0x100", "/t ttl"}, "never"},
		{Main, []string{"--sessions", dir}, []string{"0x100", "timeout 4000 ms", "1 ephemerals"}, ""},
		{Main, []string{"--tree", filepath.Join(dir, "version-2")}, []string{"7            1"}, ""},
		{Main, []string{filepath.Join(dir, "version-2", "snapshot.0")}, []string{"/ persistent"}, "/a persistent"},
		{History, []string{"/a", dir}, []string{"create /a", "setACL /a"}, "createTTL"},
	} {
		var out strings.Builder
		status := c.main(t.Context(), c.args, cli.Env{In: strings.NewReader(""), Out: &out, Err: &out, Getenv: func(string) string { return "" }})
		rest := out.String()
		for _, want := range c.want {
			_, after, found := strings.Cut(rest, want)
			if !found {
				t.Errorf("%v: status %d, no %q in\n%s", c.args, status, want, &out)
				break
			}
			rest = after
		}
		if status != cli.OK || c.not != "" && strings.Contains(out.String(), c.not) {
			t.Errorf("%v: status %d, has %q:\n%s", c.args, status, c.not, &out)
		}
	}
	status, out, stderr := run(t, History, "/a", filepath.Join(dir, "version-2", "snapshot.0"))
	if status != cli.Failed || out != "" || !strings.Contains(stderr, "a snapshot alone holds no transactions") {
		t.Errorf("history of a snapshot: %d %q %q", status, out, stderr)
	}
}
