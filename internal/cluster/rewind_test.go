package cluster

import (
	"errors"
	"io"
	"log"
	"reflect"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server"
)

// shownZnode is the part of a znode that Rewind restores.
type shownZnode struct {
	path, data string
	null       bool
	mode       proto.CreateMode
	ttlMs      int64
	owner      proto.SessionID
	acl        []proto.ACL
}

// znodes returns all znodes but that of the members, which the leader writes when it has heard of
// their addresses, and which Rewind leaves alone.
func znodes(t *testing.T, l *Cluster) (all []shownZnode) {
	t.Helper()
	err := l.Walk(t.Context(), "/", func(z server.Znode) bool {
		if z.Path == configPath {
			return true
		}
		all = append(all, shownZnode{z.Path, string(z.Data), z.Data == nil, z.Mode, z.TTLMs, z.Stat.EphemeralOwner, z.ACL})
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestRewind_EveryKind changes znodes of every kind in every way. Rewind restores all of them.
func TestRewind_EveryKind(t *testing.T) {
	l := start(t, Config{Members: 3})
	c, _, err := zk.Connect([]string{member(t, l, 1).Address()}, 10*time.Second, zk.WithLogger(log.New(io.Discard, "", 0)))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, _, err := c.Exists("/"); err != nil { // there is a session from here on
		t.Fatal(err)
	}
	leader, err := l.Leader(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	multi := func(session int64, ops ...proto.MultiOp) {
		t.Helper()
		if err := leader.Server().Multi(t.Context(), session, ops...); err != nil {
			t.Fatal(err)
		}
	}
	open := proto.OpenACL()
	digest := []proto.ACL{{Perms: proto.PermAll, ID: proto.ID{Scheme: "digest", ID: "user:hash"}}}
	create := func(op proto.OpCode, path string, mode proto.CreateMode, ttlMs int64, acl []proto.ACL) proto.MultiOp {
		return proto.MultiOp{Op: op, Path: path, Data: []byte(path), ACL: acl, Mode: mode, TTL: ttlMs}
	}
	del := func(path string) proto.MultiOp { return proto.MultiOp{Op: proto.OpDelete, Path: path, Version: -1} }
	set := func(path string, data []byte) proto.MultiOp {
		return proto.MultiOp{Op: proto.OpSetData, Path: path, Data: data, Version: -1}
	}
	multi(c.SessionID(),
		create(proto.OpCreate, "/same", 0, 0, open), create(proto.OpCreate, "/data", 0, 0, open), create(proto.OpCreate, "/acl", 0, 0, digest),
		create(proto.OpCreate, "/gone", 0, 0, digest), create(proto.OpCreate, "/gone/below", 0, 0, open), create(proto.OpCreate, "/null", 0, 0, open),
		set("/null", nil), create(proto.OpCreate, "/kind", 0, 0, open), create(proto.OpCreate, "/kind/below", 0, 0, digest),
		create(proto.OpCreateContainer, "/container", proto.ModeContainer, 0, open),
		create(proto.OpCreateTTL, "/ttl", proto.ModePersistentTTL, 60_000, open), create(proto.OpCreateTTL, "/ttl2", proto.ModePersistentTTL, 60_000, open),
		create(proto.OpCreate, "/e", proto.ModeEphemeral, 0, open), create(proto.OpCreate, "/e2", proto.ModeEphemeral, 0, digest),
		create(proto.OpCreate, "/zookeeper/quota/same", 0, 0, open), create(proto.OpCreate, "/zookeeper/quota/same/zookeeper_limits", 0, 0, open),
		set("/zookeeper/quota/same/zookeeper_limits", []byte("count=1000,bytes=-1")), create(proto.OpCreate, "/zookeeper/quota/same/zookeeper_stats", 0, 0, open),
	)
	before := znodes(t, l)
	snapshot, err := l.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, kept, err := c.Get("/same")
	if err != nil {
		t.Fatal(err)
	}
	multi(c.SessionID(),
		set("/", []byte("root")), set("/data", []byte("other")), del("/gone/below"), del("/gone"), set("/null", []byte{}),
		del("/kind/below"), del("/kind"), create(proto.OpCreate, "/kind", proto.ModeEphemeral, 0, open), del("/container"),
		del("/ttl"), del("/ttl2"), create(proto.OpCreateTTL, "/ttl2", proto.ModePersistentTTL, 1000, open), del("/e"), del("/e2"),
		create(proto.OpCreate, "/e2", 0, 0, digest), create(proto.OpCreate, "/e2/below", 0, 0, digest), create(proto.OpCreate, "/new", 0, 0, digest),
		create(proto.OpCreate, "/new/below", proto.ModeEphemeral, 0, open), del("/zookeeper/quota/same/zookeeper_limits"),
	)
	if err := leader.Server().SetACL(t.Context(), "/acl", open); err != nil {
		t.Fatal(err)
	}
	if err := l.Rewind(t.Context(), snapshot); err != nil {
		t.Fatal(err)
	}
	if after := znodes(t, l); !reflect.DeepEqual(after, before) {
		t.Errorf("after the rewind\n%v\nbefore\n%v", after, before)
	}
	if _, st, err := c.Get("/same"); err != nil || *st != *kept {
		t.Errorf("the znode that did not change has %+v %v, had %+v", st, err, kept)
	}
	if err := l.Rewind(t.Context(), Snapshot{}); !errors.Is(err, ErrInvalid) {
		t.Errorf("an empty snapshot: %v", err)
	}
	// The ephemerals of a session that ended do not come back.
	if err := l.ExpireSession(t.Context(), c.SessionID()); err != nil {
		t.Fatal(err)
	}
	if err := l.Rewind(t.Context(), snapshot); err != nil {
		t.Fatal(err)
	}
	for _, z := range znodes(t, l) {
		if z.owner != 0 {
			t.Errorf("%+v", z)
		}
	}
}
