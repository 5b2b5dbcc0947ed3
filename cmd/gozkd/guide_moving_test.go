//go:build unix

package main

import (
	"hash/adler32"
	"os"
	"path/filepath"
	"testing"

	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/internal/testca"
	"github.com/gozkd/gozkd/internal/zkfiles"
	"github.com/gozkd/gozkd/proto"
)

// The commands of docs/guide/moving.md work as they are written, and print what the page shows.
func TestGuide_Moving(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"bin", "zk1"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	writePrograms(t, dir)
	writeZooKeeper(t, filepath.Join(dir, "zookeeper", "version-2"))
	ports := reserveGuidePorts(t)
	sh := startShell(t, dir, ports)
	commands := 0
	for _, b := range readGuide(t, "moving.md", ports) {
		for _, c := range b.commands() {
			sh.check(c)
			commands++
		}
	}
	if commands < 7 {
		t.Errorf("only %d commands in the page", commands)
	}
}

// writeZooKeeper writes the files of the ZooKeeper server of the page.
func writeZooKeeper(t *testing.T, dir string) {
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

	replay, log := datatree.NewReplay(datatree.New(datatree.Options{})), zkfiles.AppendLogHeader(nil)
	for i, x := range []zkfiles.Txn{
		{Op: proto.OpCreateSession, TimeoutMs: 30_000},
		{Op: proto.OpCreate, Path: "/shop", ParentCversion: 1},
		{Op: proto.OpCreate, Path: "/shop/orders", ParentCversion: 1},
		{Op: proto.OpCreate, Path: "/shop/orders/o-0000000000", Data: []byte("first"), ParentCversion: 1},
		{Op: proto.OpCreate, Path: "/shop/orders/o-0000000001", Data: []byte("second"), ParentCversion: 2},
		{Op: proto.OpDelete, Path: "/shop/orders/o-0000000000"},
		{Op: proto.OpCreate, Path: "/shop/locks", Ephemeral: true, ParentCversion: 2},
	} {
		if x.Op == proto.OpCreate {
			x.ACL = proto.OpenACL()
		}
		r := &zkfiles.Record{Session: 0x100000000000001, Zxid: proto.MakeZxid(1, uint32(i+1)), TimeMs: 1_700_000_000_000, Txn: x}
		if _, err := replay.Apply(r); err != nil {
			t.Fatal(err)
		}
		r.HasDigest, r.DigestVersion, r.Digest = true, zkfiles.DigestVersion, replay.Digest()
		log = zkfiles.AppendLogRecord(log, r)
	}
	testca.WriteFile(t, filepath.Join(dir, "log.100000001"), append(log, make([]byte, 4096)...))
}
