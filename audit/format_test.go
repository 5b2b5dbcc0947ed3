package audit_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/gozkd/gozkd/audit"
	"github.com/gozkd/gozkd/proto"
)

var at = time.Date(2026, 11, 22, 21, 5, 6, 7_000_000, time.Local)

func bob(more ...proto.ID) []proto.ID {
	return append([]proto.ID{{Scheme: "digest", ID: "bob:s3cret-hash="}, {Scheme: "ip", ID: "10.0.0.1"}}, more...)
}

// The lines of ZooKeeper were seen at ZooKeeper 3.9.5; make compat-audit compares many more.
func TestFormats(t *testing.T) {
	const zk = "2026-11-22 21:05:06,007 INFO o.a.z.a.Slf4jAuditLogger: "
	utc := at.UTC().Format("2006-01-02T15:04:05")
	for _, c := range []struct {
		e               audit.Event
		zookeeper, json string
	}{
		{
			audit.Event{
				Time: at, Operation: audit.Create, Result: audit.Success, Session: -1, Xid: 3, Zxid: 0x100000002, IDs: bob(),
				Client: "10.0.0.1:4711", TLS: true, Znode: "/a", HasZnode: true, Mode: proto.ModePersistentTTL, HasMode: true,
			},
			zk + "session=0xffffffffffffffff\tuser=bob,10.0.0.1\tip=10.0.0.1\toperation=create\tznode=/a\tznode_type=persistent_with_ttl\tresult=success\n",
			`{"time":"` + utc + `.007000Z","operation":"create","result":"success","ids":[{"scheme":"digest","id":"bob"},{"scheme":"ip","id":"10.0.0.1"}],` +
				`"client":"10.0.0.1:4711","tls":true,"session":"0xffffffffffffffff","xid":3,"zxid":"0x100000002","znode":"/a","znode_type":"persistent_with_ttl"}` + "\n",
		},
		{
			audit.Event{
				Time: at, Operation: audit.SetACL, Result: audit.Failure, Err: proto.ErrNoAuth, Session: 1, IDs: bob(), Client: "[::1]:1",
				Znode: "", HasZnode: true, ACL: []proto.ACL{{Perms: 5, ID: proto.ID{Scheme: "digest", ID: "eve:other-hash="}}, {Perms: 31, ID: proto.ID{Scheme: "world", ID: "anyone"}}},
			},
			strings.Replace(zk, "INFO", "ERROR", 1) + "session=0x1\tuser=bob,10.0.0.1\tip=::1\toperation=setAcl\tznode=\tacl=digest:eve:other-hash=:crworld:anyone:cdrwa\tresult=failure\n",
			`{"time":"` + utc + `.007000Z","operation":"setAcl","result":"failure","error":"no auth (-102)","code":-102,"ids":[{"scheme":"digest","id":"bob"},{"scheme":"ip","id":"10.0.0.1"}],` +
				`"client":"[::1]:1","tls":false,"session":"0x1","znode":"","acl":["digest:eve:cr","world:anyone:cdrwa"]}` + "\n",
		},
		{ // the server ignores the id of auth, in which users of zkCli.sh write their password
			audit.Event{
				Time: at, Operation: audit.SetACL, Result: audit.Success, IDs: bob()[1:], Client: "10.0.0.1:1", Znode: "/a", HasZnode: true,
				ACL: []proto.ACL{{Perms: 31, ID: proto.ID{Scheme: "auth", ID: "bob:s3cret"}}},
			},
			zk + "user=10.0.0.1\tip=10.0.0.1\toperation=setAcl\tznode=/a\tacl=auth::cdrwa\tresult=success\n",
			`{"time":"` + utc + `.007000Z","operation":"setAcl","result":"success","ids":[{"scheme":"ip","id":"10.0.0.1"}],` +
				`"client":"10.0.0.1:1","tls":false,"znode":"/a","acl":["auth::cdrwa"]}` + "\n",
		},
		{ // in a multi, ZooKeeper does not know the type of a sequential znode
			audit.Event{
				Time: at, Operation: audit.Create, Result: audit.Success, IDs: bob()[1:], Client: "10.0.0.1:1", Znode: "/s0", HasZnode: true,
				Mode: proto.ModePersistentSequential, HasMode: true, InMulti: true,
			},
			zk + "user=10.0.0.1\tip=10.0.0.1\toperation=create\tznode=/s0\tresult=success\n",
			`{"time":"` + utc + `.007000Z","operation":"create","result":"success","ids":[{"scheme":"ip","id":"10.0.0.1"}],` +
				`"client":"10.0.0.1:1","tls":false,"znode":"/s0","znode_type":"persistent_sequential","multi":true}` + "\n",
		},
		{ // nobody forges a line
			audit.Event{
				Time: at, Operation: audit.Delete, Result: audit.Success, IDs: bob(proto.ID{Scheme: "digest", ID: "x\tip=1\n\r:h"})[2:], Client: "h:1",
				Znode: "/\n\xff", HasZnode: true,
			},
			zk + "user=xip=1\tip=h\toperation=delete\tznode=/\ufffd\tresult=success\n",
			`{"time":"` + utc + `.007000Z","operation":"delete","result":"success","ids":[{"scheme":"digest","id":"x\tip=1\n\r"}],` +
				`"client":"h:1","tls":false,"znode":"/\n\ufffd"}` + "\n",
		},
		{
			audit.Event{Time: at, Operation: audit.OpenSession, Result: audit.Success, Session: 2, IDs: bob()[1:], Client: "h:1"},
			"",
			`{"time":"` + utc + `.007000Z","operation":"openSession","result":"success","ids":[{"scheme":"ip","id":"10.0.0.1"}],"client":"h:1","tls":false,"session":"0x2"}` + "\n",
		},
	} {
		if got := string(audit.ZooKeeper(nil, &c.e)); got != c.zookeeper {
			t.Errorf("got  %q\nwant %q", got, c.zookeeper)
		}
		if got := string(audit.JSON(nil, &c.e)); got != c.json {
			t.Errorf("got  %s\nwant %s", got, c.json)
		}
	}
}

// A path may be as long as a request, and a file's lines must stay below the size of a file.
func TestFormats_LongValues(t *testing.T) {
	long := "/" + strings.Repeat("ü", 1<<20)
	e := audit.Event{
		Time: at, Operation: audit.Create, Result: audit.Success, IDs: []proto.ID{{Scheme: "digest", ID: long}}, Client: "h:1",
		Znode: long, HasZnode: true, Detail: long, ACL: []proto.ACL{{ID: proto.ID{Scheme: "digest", ID: long}}},
	}
	for name, format := range map[string]audit.Format{"json": audit.JSON, "zookeeper": audit.ZooKeeper} {
		if line := format(nil, &e); len(line) > 200<<10 || strings.Count(string(line), "\n") != 1 {
			t.Errorf("%s: a line of %d bytes", name, len(line))
		}
	}
}

// Identities without a name, the superuser's second one and hashes of passwords are left out.
func TestZooKeeper_Users(t *testing.T) {
	ids := []proto.ID{
		{Scheme: "ip", ID: "127.0.0.1"}, {Scheme: "digest", ID: "bob:h1"}, {Scheme: "super"}, {Scheme: "digest", ID: ":h2"}, {Scheme: "digest", ID: " :h3"},
		{Scheme: "x509", ID: "CN=alice,C=DE"},
	}
	line := string(audit.ZooKeeper(nil, &audit.Event{Time: at, Operation: audit.Delete, Result: audit.Success, IDs: ids, Client: "h:1"}))
	if !strings.Contains(line, ": user=127.0.0.1,bob,CN=alice,C=DE\tip=h\t") {
		t.Errorf("%q", line)
	}
}

// FuzzFormats: every line is one line, and in the JSON format an object that has the texts.
func FuzzFormats(f *testing.F) {
	f.Add("/a", "bob:hash", "x", "d")
	f.Add("/\n\t\r\"\\<>&", "\xff\u2028:h", "\x00", "")
	f.Fuzz(func(t *testing.T, path, id, scheme, detail string) {
		e := audit.Event{
			Time: at, Operation: audit.SetACL, Result: audit.Failure, Err: proto.ErrNoAuth, IDs: []proto.ID{{Scheme: "digest", ID: id}, {Scheme: scheme, ID: id}},
			Client: "h:1", Znode: path, HasZnode: true, ACL: []proto.ACL{{Perms: 31, ID: proto.ID{Scheme: scheme, ID: id}}}, Detail: detail, Count: 3,
		}
		for name, format := range map[string]audit.Format{"json": audit.JSON, "zookeeper": audit.ZooKeeper} {
			if line := string(format(nil, &e)); strings.Count(line, "\n") != 1 || line[len(line)-1] != '\n' || strings.Contains(line, "\r") {
				t.Errorf("%s: %q", name, line)
			}
		}
		var got struct{ Znode, Detail string }
		if err := json.Unmarshal(audit.JSON(nil, &e), &got); err != nil {
			t.Fatal(err)
		}
		for _, text := range []struct{ got, want string }{{got.Znode, path}, {got.Detail, detail}} {
			if len(text.want) < 1000 && text.got != strings.ToValidUTF8(text.want, "\ufffd") && utf8.ValidString(text.want) {
				t.Errorf("%q became %q", text.want, text.got)
			}
		}
	})
}
