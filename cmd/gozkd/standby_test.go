package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/internal/testkit/program"
	"github.com/gozkd/gozkd/proto"
)

// A standby shows what is archived, and its watches fire. When all three members are lost under
// load, the promoted standby has everything that it has shown, and clients go on with their
// sessions, ephemerals and sequence counters; the other members join it. The commands are those of
// docs/guide/standby.md.
func TestStandby_AllMembersLost(t *testing.T) {
	t.Parallel() // it waits for processes
	tr := newTrio(t)
	place, dir, port := t.TempDir(), filepath.Join(t.TempDir(), "standby"), reservePorts(t, 1)[0]
	admin := reservePorts(t, 1)[0]
	url := "file:///" + strings.TrimPrefix(filepath.ToSlash(place), "/")
	tr.lines = append(tr.lines, "-o", "gozkd.archive.url="+url, "-o", "gozkd.archive.intervalMs=300")
	tr.start(0, 1, 2)
	holder, expired := tr.hold(time.Minute)
	next := func() (string, error) {
		return holder.Create("/load/n-", nil, zk.FlagSequence, zk.WorldACL(zk.PermAll))
	}
	if _, err := next(); err != nil {
		t.Fatal(err)
	}
	await(t, "a base", func() error {
		if bases, _ := filepath.Glob(filepath.Join(place, "*", "base", "*", "*.last")); len(bases) == 0 {
			return errors.New("there is none")
		}
		return nil
	})
	standby := func(args ...string) (status int, out string) {
		var stdout, stderr strings.Builder
		status = run("gozkd", append([]string{"standby"}, args...), outside(&stdout, &stderr))
		return status, stdout.String() + stderr.String()
	}
	var page []guideCommand
	here := strings.NewReplacer("s3://backups/zk", url, "/var/lib/gozkd", dir, "2181", port)
	for _, b := range readGuide(t, "standby.md", here.Replace) {
		page = append(page, b.commands()...)
	}
	if len(page) != 4 || !strings.HasPrefix(page[0].line, "gozkd standby "+url) || !strings.HasPrefix(page[2].line, "gozkd standby promote ") {
		t.Fatalf("docs/guide/standby.md has the commands %q", page)
	}
	cmd := program.Command(append(strings.Fields(page[0].line)[1:], "--client-address", "127.0.0.1",
		"-o", "admin.serverAddress=127.0.0.1", "-o", "admin.serverPort="+admin, "-o", "gozkd.archive.intervalMs=300")...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // it may have ended

	// Reads and watches, but no writes.
	fired := make(chan string, 1000)
	var reader *client.Client
	await(t, "the standby serves", func() (err error) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		reader, err = client.Connect(ctx, client.Config{
			Servers: []string{"127.0.0.1:" + port}, ReadOnly: true,
			OnEvent: func(e client.Event) {
				select {
				case fired <- e.Path:
				default: // enough
				}
			},
		})
		return err
	})
	if err := reader.AddWatch(t.Context(), "/load", proto.AddWatchPersistentRecursive); err != nil {
		t.Fatal(err)
	}
	if _, _, err := reader.Create(t.Context(), "/wrong", nil, client.CreateOptions{}); err == nil {
		t.Error("a standby takes writes")
	}
	var said strings.Builder
	if run("gozkd", []string{"status", "-server", "127.0.0.1:" + port}, outside(&said, &said)); !strings.Contains(said.String(), "it is a standby, which has all that its archive had") {
		t.Errorf("status: %s", &said)
	}
	if status, text := fetch(t, "http://127.0.0.1:"+admin+"/readyz"); status != 503 || !strings.Contains(text, "[-]leader failed: a standby has no leader") {
		t.Errorf("readyz: %d %s", status, text)
	}
	said.Reset()
	if status := run("gozkd", []string{"backup", "--from", "http://127.0.0.1:" + admin, "--auth-file", filepath.Join(dir, "standby", "admin.token"), "x"}, outside(&said, &said)); status == 0 ||
		!strings.Contains(said.String(), "503 Service Unavailable: a standby has no leader") {
		t.Errorf("backup: %d %s", status, &said)
	}
	said.Reset()
	const answersReads = " answers reads, as a standby or a server without a quorum does: add -r\n"
	if status := run("gozkd", []string{"cli", "-server", "127.0.0.1:1,127.0.0.1:" + port, "ls", "/"}, outside(&said, &said)); status == 0 ||
		!strings.HasSuffix(said.String(), " 127.0.0.1:"+port+answersReads) {
		t.Errorf("cli without -r: %d %s", status, &said)
	}
	load := write(t, tr.addresses(0, 1, 2), 2)
	await(t, "load", func() error {
		if n := len(load.so()); n < 200 {
			return fmt.Errorf("%d", n)
		}
		return nil
	})
	shown := load.so()
	await(t, "the standby has what was acknowledged", func() error {
		for _, path := range shown { // replies to two clients have another order than the writes
			if _, _, err := reader.Get(t.Context(), path, false); err != nil {
				return err
			}
		}
		return nil
	})
	for path := ""; path != shown[0]; path = <-fired {
	}
	if status, out := standby("promote", dir); status == 0 || !strings.Contains(out, "Stop gozkd standby first") {
		t.Errorf("promotion of a standby that runs: %d %s", status, out)
	}

	for i := range tr.procs {
		tr.kill(i)
	}
	lost := time.Now()
	if err := errors.Join(reader.Close(), cmd.Process.Signal(syscall.SIGTERM), cmd.Wait()); err != nil {
		t.Error(err)
	}
	tr.dirs = [3]string{dir, t.TempDir(), t.TempDir()}
	status, out := standby(append(strings.Fields(page[2].line)[2:], tr.flags(0)...)...)
	if status != 0 || !strings.Contains(out, " sessions and their 1 ephemeral znodes") {
		t.Fatalf("promote: %d %s", status, out)
	}
	number := regexp.MustCompile(`\S*\d\S*`)
	says := number.ReplaceAllString(strings.ReplaceAll(strings.Join(page[2].want, "\n"), dir, "DIR"), "…")
	if want := outputPattern(strings.Split(says, "\n")); !want.MatchString(generalize(strings.ReplaceAll(out, dir, "DIR"))) {
		t.Errorf("promote prints\n%s\nand the page says\n%s", out, says)
	}
	acked := load.so() // nothing is acknowledged before the next line
	tr.start(0)
	session := holder.SessionID()
	await(t, "the session goes on", func() error { _, _, err := holder.Get("/lock"); return err })
	took := time.Since(lost)
	if _, stat, err := holder.Get("/lock"); err != nil || stat.EphemeralOwner != session || holder.SessionID() != session || expired.Load() != 0 {
		t.Errorf("%+v %v: session %#x is %#x, expired %d times", stat, err, session, holder.SessionID(), expired.Load())
	}
	if path, err := next(); err != nil || path <= "/load/n-0000000001" {
		t.Errorf("the sequence counter goes on with %q, %v", path, err)
	}
	load.stop()
	is := tree(t, holder, "/load")
	missing := 0
	for i, path := range acked {
		if _, there := is[path]; !there {
			if missing++; i < len(shown) {
				t.Errorf("%s is missing, which the standby has shown", path)
			}
		}
	}
	t.Logf("lost %d of %d acknowledged writes; clients go on %v after the loss\n%s", missing, len(acked), took, out)

	tr.start(1, 2)
	for i := range 3 {
		c := connect(t, tr.addresses(i))
		await(t, "all members are one ensemble", func() error {
			config, _, err := c.Get("/zookeeper/config")
			if err == nil && strings.Count(string(config), "server.") != 3 {
				err = fmt.Errorf("config %q", config)
			}
			return err
		})
	}
	if fences, _ := filepath.Glob(filepath.Join(place, "*", "promoted", "*")); len(fences) != 1 {
		t.Errorf("fences: %q", fences)
	}
	if _, err := os.Stat(filepath.Join(dir, "standby")); err == nil {
		t.Error("the data of the standby are left")
	}
}

// What is no archive is refused with what to name instead.
func TestStandby_NoArchive(t *testing.T) {
	for _, source := range []string{"http://zk1:8080", "zk://zk1", "ftp://x"} {
		var said strings.Builder
		dir := t.TempDir()
		status := run("gozkd", []string{"standby", source, "--into", dir}, outside(&said, &said))
		if status != 2 || !strings.Contains(said.String(), source+" is no archive. A standby does not follow servers: name") {
			t.Errorf("%s: status %d, %s", source, status, &said)
		}
	}
}

// No key of the data directory or of the ensemble has an effect: with the zoo.cfg of a member, with
// one that names a data directory that cannot be, and with one that names none.
func TestStandby_KeysWithoutEffect(t *testing.T) {
	dir := t.TempDir()
	var unit []string // that of the page
	for _, b := range readGuide(t, "standby.md", strings.TrimSpace) {
		for _, line := range b.lines {
			if words, ok := strings.CutPrefix(line, "ExecStart=/usr/local/bin/gozkd standby "); ok {
				unit = strings.Fields(words)
			}
		}
	}
	if !slices.Equal(unit, []string{"${ARCHIVE_URL}", "--into", "/var/lib/gozkd", "/etc/gozkd/zoo.cfg"}) {
		t.Errorf("the unit of docs/guide/standby.md starts a standby with %q, this test with others", unit)
	}
	members := "server.1=a:1:2;2181\nserver.2=b:1:2\nserver.3=c:1:2\n"
	for _, text := range []string{
		"", members, members + "dataDir=" + filepath.ToSlash(os.Args[0]) + "\ndataLogDir=no\\such\ndatadir.autocreate=true\n",
		"standaloneEnabled=false\nmyid=x\n", "dynamicConfigFile=missing\ngroup.1=1\n", "server.1=\n",
	} {
		file := filepath.Join(dir, "z.cfg")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var said strings.Builder
		status := run("gozkd", []string{
			"standby", "file:///" + filepath.ToSlash(filepath.Join(dir, "missing")), "--into", filepath.Join(dir, "into"), file,
		}, outside(&said, &said))
		if status != 1 || !strings.HasPrefix(said.String(), "gozkd: the directory ") || !strings.Contains(said.String(), "missing does not exist") {
			t.Errorf("%q: status %d, %s", text, status, &said)
		}
	}
}
