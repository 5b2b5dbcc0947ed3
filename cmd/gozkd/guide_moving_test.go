//go:build unix

package main

import (
	"hash/adler32"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/internal/testca"
	"github.com/gozkd/gozkd/internal/testkit/zkleader"
	"github.com/gozkd/gozkd/internal/testkit/zkrecord"
	"github.com/gozkd/gozkd/internal/zkfiles"
	"github.com/gozkd/gozkd/proto"
)

// The commands of docs/guide/moving.md work as they are written, and print what the page shows.
func TestGuide_Moving(t *testing.T) {
	sh := startGuide(t, "zk1")
	history, writeLast := writeZooKeeper(t, filepath.Join(sh.dir, "zookeeper", "version-2"))
	leader := zkleader.Start(t, sh.ports.toFree("127.0.0.1:2881"), sh.ports.toFree("127.0.0.1:3881"), history)
	defer sh.stopOnRequest(leader, writeLast)()
	sh.follow("moving.md", 12)
}

// follow runs the commands of a page, which must be as many at least.
func (sh *guideShell) follow(page string, least int) {
	sh.t.Helper()
	commands := 0
	for _, b := range sh.read(page) {
		for _, c := range b.commands() {
			sh.check(c)
			commands++
		}
	}
	if commands < least {
		sh.t.Errorf("only %d commands in the page", commands)
	}
}

// The commands of the pages for newcomers that need no installation work as they are written. In
// place of docker there is a program that does in this directory what an image of gozkd does.
func TestGuide_Start(t *testing.T) {
	for page, least := range map[string]int{"start/zookeeper.md": 6, "start/bitnami.md": 7} {
		t.Run(page, func(t *testing.T) {
			sh := startGuide(t)
			sh.writeProgram("docker", `[ "$1 $2" = "run --rm" ] && shift 2
variables=ZOO_CONF_DIR=conf
while [ "$1" = -e ]; do variables="$variables $2"; shift 2; done
[ "$1" = gozkd ] && shift
exec env $variables gozkd "$@"
`)
			writeZooKeeper(t, filepath.Join(sh.dir, "zookeeper", "version-2"))
			sh.follow(page, least)
		})
	}
}

// stopOnRequest writes a zkServer.sh that stops the server. A write that nobody received is then in
// its log. The result waits for the script's use, or ends the wait.
func (sh *guideShell) stopOnRequest(zk *zkleader.Leader, writeLast func()) (end func()) {
	t := sh.t
	t.Helper()
	pipe := filepath.Join(sh.dir, "stop")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	sh.writeProgram("zkServer.sh", "exec echo stop > '"+pipe+"'\n")
	requests, err := os.OpenFile(pipe, os.O_RDWR|syscall.O_NONBLOCK, 0) // so that neither the open nor Close waits for the script
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	// Ends with a request, or when end closes the pipe; end waits for it.
	go func() {
		defer close(done)
		if _, err := requests.Read(make([]byte, 5)); err != nil {
			return
		}
		zk.AwaitProbe()
		writeLast()
		zk.Stop()
	}()
	return func() {
		_ = requests.Close() // it may be read from
		<-done
	}
}

// writeZooKeeper writes the files of the ZooKeeper server of the page. It returns its transactions,
// and a function that adds one more to its log.
func writeZooKeeper(t *testing.T, dir string) (history []zkleader.Txn, writeLast func()) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	snapshot := zkfiles.AppendSnapshotHeader(nil, nil, nil)
	for _, path := range []string{"/", "/zookeeper", "/zookeeper/config", "/zookeeper/quota"} {
		z := zkfiles.Znode{Path: path, Data: []byte{}, ACL: zkfiles.OpenKey}
		snapshot = z.Append(snapshot)
	}
	snapshot = zkfiles.AppendTreeEnd(snapshot)
	testca.WriteFile(t, filepath.Join(dir, "snapshot.0"), zkfiles.AppendSeal(snapshot, adler32.Checksum(snapshot)))

	name := filepath.Join(dir, "log.100000001")
	replay, log := datatree.NewReplay(datatree.New(datatree.Options{})), zkfiles.AppendLogHeader(nil)
	for i, x := range []zkfiles.Txn{
		{Op: proto.OpCreateSession, TimeoutMs: 30_000},
		{Op: proto.OpCreate, Path: "/shop", ParentCversion: 1},
		{Op: proto.OpCreate, Path: "/shop/orders", ParentCversion: 1},
		{Op: proto.OpCreate, Path: "/shop/orders/o-0000000000", Data: []byte("first"), ParentCversion: 1},
		{Op: proto.OpCreate, Path: "/shop/orders/o-0000000001", Data: []byte("second"), ParentCversion: 2},
		{Op: proto.OpDelete, Path: "/shop/orders/o-0000000000"},
		{Op: proto.OpCreate, Path: "/shop/locks", Ephemeral: true, ParentCversion: 2},
		{Op: proto.OpSetData, Path: "/shop/orders/o-0000000001", Data: []byte("second, changed"), Version: 1},
	} {
		if x.Op == proto.OpCreate {
			x.ACL = proto.OpenACL()
		}
		r := &zkfiles.Record{Session: 0x100000000000001, Zxid: proto.MakeZxid(1, uint32(i+1)), TimeMs: 1_700_000_000_000, Txn: x}
		if err := replay.Apply(r); err != nil {
			t.Fatal(err)
		}
		r.HasDigest, r.DigestVersion, r.Digest = true, zkfiles.DigestVersion, replay.Digest()
		if x.Op == proto.OpSetData {
			writeLast = func() { testca.WriteFile(t, name, append(zkrecord.AppendToLog(log, r), make([]byte, 4096)...)) }
			break
		}
		log = zkrecord.AppendToLog(log, r)
		history = append(history, zkleader.Txn{Zxid: r.Zxid, Data: zkrecord.Append(nil, r)})
	}
	testca.WriteFile(t, name, append(log, make([]byte, 4096)...))
	return history, writeLast
}
