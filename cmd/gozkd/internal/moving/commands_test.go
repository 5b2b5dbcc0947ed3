package moving

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/cli"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/config"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/replica"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/zkdata"
	"github.com/gozkd/gozkd/consensus"
	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/internal/memberid"
	"github.com/gozkd/gozkd/internal/testca"
	"github.com/gozkd/gozkd/internal/testkit/exhaustive"
	"github.com/gozkd/gozkd/internal/testkit/vfstest"
	"github.com/gozkd/gozkd/internal/testkit/zkcorpus"
	"github.com/gozkd/gozkd/internal/zkfiles"
	"github.com/gozkd/gozkd/proto"
)

func noenv(string) string { return "" }

// run runs a command.
func run(t *testing.T, main cli.Main, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, errs strings.Builder
	status = main(t.Context(), args, cli.Env{In: strings.NewReader(""), Out: &out, Err: &errs, Getenv: noenv, Server: config.LocalServer(noenv, nil)})
	return status, out.String(), errs.String()
}

func mustRun(t *testing.T, main cli.Main, args ...string) string {
	t.Helper()
	status, stdout, stderr := run(t, main, args...)
	if status != cli.OK {
		t.Fatalf("%v: status %d\n%s%s", args, status, stdout, stderr)
	}
	return stdout
}

func mustFind(t *testing.T, dir string) *zkdata.Directory {
	t.Helper()
	d, err := zkdata.Find(dir)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func mustReport(t *testing.T, args ...string) (r report) {
	t.Helper()
	if err := json.Unmarshal([]byte(mustRun(t, Import, append(args, "--json")...)), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// An import, its export, and the import of that are the same state. The sources are not changed.
func TestImport_ExportAndBack(t *testing.T) {
	for _, release := range exhaustive.Or([]string{"3.4.14", "3.9.5"}, zkcorpus.Releases) {
		dir, _ := zkcorpus.Unpack(t, release)
		before := vfstest.Fingerprint(t, dir)
		first, second := filepath.Join(t.TempDir(), "first"), filepath.Join(t.TempDir(), "second")
		r := mustReport(t, dir, "--into", first)
		imported := vfstest.Fingerprint(t, first)
		for _, version := range []string{"3.5", "3.8", "3.9"} {
			back := filepath.Join(t.TempDir(), "back")
			out := mustRun(t, Export, "--zookeeper", back, "--from", first, "--for", version, "--id", "3")
			if !strings.Contains(out, "read back and verified") || strings.Contains(out, "extendedTypesEnabled") == (release == "3.4.14") {
				t.Errorf("%s: %s", release, out)
			}
			if id, err := os.ReadFile(filepath.Join(back, "myid")); err != nil || string(id) != "3\n" {
				t.Errorf("myid is %q, %v", id, err)
			}
			again := mustReport(t, back, "--verify")
			if again.Digest != r.Digest || again.Zxid != r.Zxid || again.Sessions != r.Sessions || again.Ephemerals != r.Ephemerals || again.Znodes != r.Znodes {
				t.Errorf("%s for %s: %+v\nwant %+v", release, version, again, r)
			}
			if (again.Compared > 0) != (version > "3.5") {
				t.Errorf("%s for %s: %d digests", release, version, again.Compared)
			}
			if version == "3.9" {
				mustReport(t, back, "--into", second)
			}
		}
		if r.Sessions == 0 || r.Znodes < 20 {
			t.Errorf("%s: %+v", release, r)
		}
		a, b := mustLoadOwn(t, first), mustLoadOwn(t, second)
		if a.Digest() != b.Digest() || a.LastZxid() != b.LastZxid() {
			t.Errorf("%s: the state is another after an export and an import", release)
		}
		for s := range a.Sessions() {
			if s.Passwd != zkfiles.Password(s.ID) || s.TimeoutMs <= 0 {
				t.Errorf("%s: session %+v", release, s)
			}
		}
		if vfstest.Fingerprint(t, dir) != before || vfstest.Fingerprint(t, first) != imported {
			t.Errorf("%s: a source was changed", release)
		}
	}
}

func mustLoadOwn(t *testing.T, dir string) *datatree.Tree {
	t.Helper()
	out := filepath.Join(t.TempDir(), "export")
	mustRun(t, Export, "--zookeeper", out, "--from", dir)
	tree, _, err := zkdata.ReadDirectory(t.Context(), out, "")
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// A leader that was elected and wrote nothing leaves its epoch only in a file. Its clients have
// seen the first zxid of that epoch, so the next one must be above it.
func TestImport_EpochWithoutWrites(t *testing.T) {
	dir, _ := zkcorpus.Unpack(t, "3.9.5")
	last := mustReport(t, dir, "--verify").Zxid
	if err := os.WriteFile(filepath.Join(dir, "version-2", "currentEpoch"), []byte("7"), 0o644); err != nil {
		t.Fatal(err)
	}
	if r := mustReport(t, dir, "--verify"); r.Zxid != "0x700000000" {
		t.Errorf("the last zxid is %s", r.Zxid)
	}
	if r := mustReport(t, dir, "--verify", "--until", last); r.Zxid != last {
		t.Errorf("--until %s: the last zxid is %s", last, r.Zxid)
	}
}

// The number of the server is that in myid, which must be good and agree with --id.
func TestImport_Number(t *testing.T) {
	dir, _ := zkcorpus.Unpack(t, "3.9.5")
	for _, c := range []struct{ myid, id, want string }{
		{"", "", "1"}, {"", "7", "7"}, {"3\n", "", "3"}, {" 3 \nx", "3", "3"},
		{"", "0", "0"}, {"0", "", "0"}, {"0", "0", "0"},
		{"", "255", "a server, 0 to 254"}, {"3", "4", "--id is 4"}, {"0", "1", "--id is 1"}, {"300", "", "allowed: 0 to 254"}, {"three", "", `is "three"; allowed`},
	} {
		into := t.TempDir()
		args := []string{dir, "--into", into}
		if c.id != "" {
			args = append(args, "--id", c.id)
		}
		if c.myid != "" {
			if err := os.WriteFile(filepath.Join(into, "myid"), []byte(c.myid), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		status, _, stderr := run(t, Import, args...)
		if _, err := strconv.Atoi(c.want); err != nil {
			if status == cli.OK || !strings.Contains(stderr, c.want) {
				t.Errorf("%+v: status %d\n%s", c, status, stderr)
			}
			continue
		}
		held, err := consensus.ReadCheckpoint(filepath.Join(into, "checkpoint.db"), &replica.Replica{})
		if status != cli.OK || err != nil || fmt.Sprint(memberid.Number(held.Member)) != c.want {
			t.Errorf("%+v: status %d, member %d, %v\n%s", c, status, held.Member, err, stderr)
		}
		wantFile := c.want + "\n" // without it, a member of an ensemble does not start
		if c.myid != "" {
			wantFile = c.myid
		}
		if text, err := os.ReadFile(filepath.Join(into, "myid")); string(text) != wantFile {
			t.Errorf("%+v: myid is %q, %v, want %q", c, text, err, wantFile)
		}
	}
}

func TestImport_Flags(t *testing.T) {
	dir, want := zkcorpus.Unpack(t, "3.9.5")
	all := mustReport(t, dir, "--verify")
	none := mustReport(t, dir, "--verify", "--without-sessions")
	if none.Sessions != 0 || none.Ephemerals != 0 || none.Closed != all.Sessions || none.Znodes != all.Znodes-all.Ephemerals {
		t.Errorf("%+v, all is %+v", none, all)
	}
	var top string
	for path, z := range want {
		if strings.Count(path, "/") == 1 && z.Stat.NumChildren > 0 && path != "/" && path != "/zookeeper" {
			top = path
		}
	}
	into := filepath.Join(t.TempDir(), "into")
	part := mustReport(t, dir, "--into", into, "--only", top, "--without-sessions")
	own := mustLoadOwn(t, into)
	if want := fmt.Sprintf("%#x", datatree.NewReplay(own).Digest()); part.Digest != want || part.Digest == all.Digest {
		t.Errorf("the digest of a part is %s, want %s; all is %s", part.Digest, want, all.Digest)
	}
	for _, z := range treeOf(own) {
		if z != "/" && !strings.HasPrefix(z+"/", top+"/") && !strings.HasPrefix(z, "/zookeeper") {
			t.Errorf("--only %s keeps %s", top, z)
		}
	}
	text := mustRun(t, Import, dir, "--verify")
	if !strings.Contains(text, "verified    "+dir) || !strings.Contains(text, "times, and equal") {
		t.Error(text)
	}
	// The server with more transactions counts, whatever the order.
	older := t.TempDir()
	if err := os.CopyFS(older, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	logs := mustFind(t, older).Logs
	if err := os.Remove(logs[len(logs)-1].Path); err != nil {
		t.Fatal(err)
	}
	for _, dirs := range [][]string{{older, dir}, {dir, older}} {
		if r := mustReport(t, append(dirs, "--verify")...); r.From != dir || r.Zxid != all.Zxid {
			t.Errorf("from %v: %+v", dirs, r)
		}
	}
}

func treeOf(tree *datatree.Tree) (paths []string) {
	tree.Walk("/", func(z proto.Znode) bool { paths = append(paths, z.Path); return true })
	return paths
}

// The log may be in a directory of its own, and both may be named with or without version-2.
func TestImport_LogDirectory(t *testing.T) {
	dir, _ := zkcorpus.Unpack(t, "3.8.4")
	want := mustReport(t, dir, "--verify")
	logs := filepath.Join(t.TempDir(), "logs:of zk", "version-2") // a colon, as on Windows after the drive
	if err := os.MkdirAll(logs, 0o755); err != nil {
		t.Skip("this disk has no names with a colon: ", err)
	}
	for _, f := range mustFind(t, dir).Logs {
		if err := os.Rename(f.Path, filepath.Join(logs, filepath.Base(f.Path))); err != nil {
			t.Fatal(err)
		}
	}
	for _, arg := range []string{dir + ":" + filepath.Dir(logs), filepath.Join(dir, "version-2") + ":" + logs} {
		if r := mustReport(t, arg, "--verify"); r.Digest != want.Digest {
			t.Errorf("%s: %+v", arg, r)
		}
	}
	if status, _, stderr := run(t, Import, dir+":"+logs+"/none", "--verify"); status != cli.Failed || !strings.Contains(stderr, "after the colon in") {
		t.Error(stderr)
	}
}

func TestImport_Refusals(t *testing.T) {
	dir, _ := zkcorpus.Unpack(t, "3.9.5")
	full := t.TempDir()
	for _, name := range []string{"LOCK", "precious"} {
		if err := os.WriteFile(filepath.Join(full, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		main   cli.Main
		args   []string
		status int
		want   string
	}{
		{Import, []string{dir}, cli.Usage, "--into is missing"},
		{Import, []string{"--into", "x"}, cli.Usage, "name the dataDir"},
		{Import, []string{dir, "--into", full}, cli.Failed, "is not empty, it holds precious"},
		{Import, []string{full, "--verify"}, cli.Failed, "holds no snapshot.* and no log.*"},
		{Import, []string{filepath.Join(dir, "none"), "--verify"}, cli.Failed, "name the dataDir of a ZooKeeper server"},
		{Import, []string{dir, "--verify", "--into", "x"}, cli.Usage, "leave --into out"},
		{Import, []string{dir, "--verify", "--until", "12"}, cli.Usage, "is no moment: name a zxid"},
		{Import, []string{dir, "--verify", "--until", "0x1"}, cli.Failed, "name a later zxid"},
		{Import, []string{dir, "--verify", "--only", "/nowhere"}, cli.Failed, "there is no such znode"},
		{Import, []string{dir, "--verify", "--only", "a/"}, cli.Usage, "must start with /"},
		{Export, []string{"--from", dir}, cli.Usage, "--zookeeper is missing"},
		{Export, []string{"--zookeeper", full, "--from", dir}, cli.Failed, "is not empty"},
		{Export, []string{"--zookeeper", filepath.Join(full, "new"), "--from", dir, "--for", "3.4"}, cli.Usage, "--for 3.4"},
		{Export, []string{"--zookeeper", filepath.Join(full, "new"), "--from", dir}, cli.Failed, "no state in data directory"},
	} {
		if status, _, stderr := run(t, c.main, c.args...); status != c.status || !strings.Contains(stderr, c.want) {
			t.Errorf("%v: status %d, %s", c.args, status, stderr)
		}
	}
	if _, err := os.Stat(filepath.Join(full, "new")); err == nil {
		t.Error("a refused export made its directory")
	}
}

// An interrupted export leaves nothing, so that it can be repeated.
func TestExport_Interrupted(t *testing.T) {
	source, _ := zkcorpus.Unpack(t, "3.9.5")
	from, to := filepath.Join(t.TempDir(), "data"), filepath.Join(t.TempDir(), "zookeeper")
	mustRun(t, Import, source, "--into", from)
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	var out, errs strings.Builder
	args := []string{"--zookeeper", to, "--from", from}
	if status := Export(ctx, args, cli.Env{Out: &out, Err: &errs, Getenv: noenv, Server: config.LocalServer(noenv, nil)}); status != cli.Failed {
		t.Errorf("status %d\n%s%s", status, &out, &errs)
	}
	mustRun(t, Export, args...)
}

// An export that was killed leaves an unfinished snapshot, which the next one removes and names. If
// there is data beside it, the next one is refused and removes nothing.
func TestExport_Killed(t *testing.T) {
	source, _ := zkcorpus.Unpack(t, "3.9.5")
	from, to := filepath.Join(t.TempDir(), "data"), filepath.Join(t.TempDir(), "zookeeper")
	mustRun(t, Import, source, "--into", from)
	args := []string{"--zookeeper", to, "--from", from}
	version2 := filepath.Join(to, "version-2")
	killed := version2 + ".unfinished"
	for _, dir := range []string{killed, version2} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	testca.WriteFile(t, filepath.Join(killed, "snapshot.1"), []byte("ZKSN"))
	status, _, stderr := run(t, Export, args...)
	if _, err := os.Stat(filepath.Join(killed, "snapshot.1")); err != nil || status != cli.Failed || !strings.Contains(stderr, "is not empty") {
		t.Errorf("with version-2: status %d, %s%v", status, stderr, err)
	}
	if err := os.Remove(version2); err != nil {
		t.Fatal(err)
	}
	if status, _, stderr := run(t, Export, args...); status != cli.OK || !strings.Contains(stderr, killed+", which an interrupted export left") {
		t.Errorf("status %d, %s", status, stderr)
	}
	entries, err := os.ReadDir(to)
	if err != nil || len(entries) != 1 || entries[0].Name() != "version-2" {
		t.Errorf("%v, %v", entries, err)
	}
	mustFind(t, to)
}

// A znode too large for ZooKeeper's reader, and one that needs a setting, are named.
func TestExport_SaysWhatZooKeeperNeeds(t *testing.T) {
	r := datatree.NewReplay(datatree.New(datatree.Options{}))
	for i, x := range []zkfiles.Txn{
		{Op: proto.OpCreate, Path: "/large", Data: make([]byte, maxBuffer+1), ACL: proto.OpenACL(), ParentCversion: 1},
		{Op: proto.OpCreateTTL, Path: "/ttl", ACL: proto.OpenACL(), ParentCversion: 2, TTLMs: 5},
	} {
		if err := r.Apply(&zkfiles.Record{Zxid: proto.Zxid(i + 1), Txn: x}); err != nil {
			t.Fatal(err)
		}
	}
	var out strings.Builder
	c := &exportCommand{dir: filepath.Join(t.TempDir(), "out"), version: "3.9"}
	c.Env.Out = &out
	e, err := c.write(t.Context(), r.Tree())
	if err != nil {
		t.Fatal(err)
	}
	c.print(e)
	for _, want := range []string{"extendedTypesEnabled=true", "larger -Djute.maxbuffer for ZooKeeper, because of /large"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in %s", want, &out)
		}
	}
}
