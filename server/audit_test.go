package server_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozkd/gozkd/audit"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server"
)

// trail is an audit.Sink that keeps events. While full is set, clients wait.
type trail struct {
	mu     sync.Mutex
	events []audit.Event
	full   bool
	room   chan struct{}
}

func (l *trail) Record(e *audit.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, *e)
}

func (l *trail) Full() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.full
}

func (l *trail) Room() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.room
}

func (l *trail) setFull(full bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.full = full
	if full {
		l.room = make(chan struct{})
	} else {
		close(l.room)
	}
}

// take returns what happened since the last call, one event per text.
func (l *trail) take() (texts []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.events {
		var who []string
		for _, id := range e.IDs {
			user, _, _ := strings.Cut(id.ID, ":")
			who = append(who, id.Scheme+" "+user)
		}
		text := fmt.Sprintf("%s %s %s [%s]", e.Operation, e.Result, e.Znode, strings.Join(who, ","))
		if e.Err != proto.OK {
			text += fmt.Sprintf(" %d", e.Err)
		}
		if e.Detail != "" {
			text += " " + e.Detail
		}
		texts = append(texts, text)
	}
	l.events = nil
	return texts
}

// askRaw sends a request and awaits its reply.
func askRaw(r *raw, op proto.OpCode, body []byte) {
	r.t.Helper()
	r.call(1, op, bytesRecord(body))
}

func wantTrail(t *testing.T, l *trail, want ...string) {
	t.Helper()
	synctest.Wait()
	if got := l.take(); !slices.Equal(got, want) {
		t.Errorf("got\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

// Requests that fail to authenticate need little room in the log, whatever they contain.
func TestAudit_LongScheme(t *testing.T) {
	l := new(trail)
	bubble(t, server.Config{Audit: l}, func(t *testing.T, dial func() *raw) {
		c := dial()
		c.connect(30_000, 0, make([]byte, 16))
		l.take()
		askRaw(c, proto.OpAuth, (&proto.AuthRequest{Scheme: strings.Repeat("x", 100_000)}).Append(nil))
		synctest.Wait()
		if got := strings.Join(l.take(), "\n"); !strings.HasPrefix(got, "authenticate failure") || !strings.Contains(got, "xxx") || len(got) > 500 {
			t.Errorf("%d bytes: %.500s", len(got), got)
		}
	})
}

// So do ACLs that are too long for a znode.
func TestAudit_LongACL(t *testing.T) {
	l := new(trail)
	bubble(t, server.Config{Audit: l}, func(t *testing.T, dial func() *raw) {
		c := dial()
		c.connect(30_000, 0, make([]byte, 16))
		world := proto.OpenACL()[0]
		long := world
		long.ID.ID = strings.Repeat("x", 40<<10)
		for _, tc := range []struct {
			sent   []proto.ACL
			kept   int
			detail string
		}{
			{slices.Repeat([]proto.ACL{world}, 512), 512, ""},
			{slices.Repeat([]proto.ACL{world}, 30_000), 512, "512 of 30000 entries of the ACL"},
			{[]proto.ACL{world, long, world}, 1, "1 of 3 entries of the ACL"},
			{nil, 0, ""},
		} {
			synctest.Wait()
			l.take()
			askRaw(c, proto.OpSetACL, (&proto.SetACLRequest{Path: "/", ACL: tc.sent, Version: 7}).Append(nil))
			synctest.Wait()
			l.mu.Lock()
			if e := l.events[0]; len(l.events) != 1 || e.Operation != audit.SetACL || e.Err == proto.OK || len(e.ACL) != tc.kept || e.Detail != tc.detail {
				t.Errorf("%d entries: %d are kept, %+.300v", len(tc.sent), len(e.ACL), e)
			}
			l.mu.Unlock()
		}
	})
}

func TestAudit(t *testing.T) {
	l := new(trail)
	cfg := server.Config{Audit: l, AuditReads: []string{"/read", "/also/"}, Words: []string{"srst"}}
	serverBubble(t, cfg, func(t *testing.T, s *server.Server, dial func() *raw) {
		wantTrail(t, l, "serverStart success  []")
		c := dial()
		c.connect(30_000, 0, make([]byte, 16))
		const ip = "[ip 127.0.0.1]"
		wantTrail(t, l, "openSession success  "+ip)
		makeZnode := func(r *raw, path string, mode proto.CreateMode, acl []proto.ACL) {
			askRaw(r, proto.OpCreate, (&proto.CreateRequest{Path: path, ACL: acl, Mode: mode}).Append(nil, proto.OpCreate))
		}
		makeZnode(c, "/a", proto.ModePersistentSequential, proto.OpenACL())
		makeZnode(c, "/none/a", 0, proto.OpenACL())
		makeZnode(c, "/e", proto.ModeEphemeral, proto.OpenACL())
		askRaw(c, proto.OpDelete, (&proto.PathVersionRequest{Path: "/none"}).Append(nil))
		askRaw(c, proto.OpDelete, []byte{0})
		wantTrail(t, l, "create success /a0000000000 "+ip, "create failure /none/a "+ip+" -101", "create success /e "+ip,
			"delete failure /none "+ip+" -101", "delete failure  "+ip+" -5")

		op := func(op proto.OpCode, path string) proto.MultiOp {
			return proto.MultiOp{Op: op, Path: path, ACL: proto.OpenACL(), Version: -1}
		}
		multi := func(ops ...proto.MultiOp) { askRaw(c, proto.OpMulti, (&proto.MultiRequest{Ops: ops}).Append(nil)) }
		multi(op(proto.OpCreate, "/m"), op(proto.OpCheck, "/m"), op(proto.OpSetData, "/m"), op(proto.OpDelete, "/m"))
		multi(op(proto.OpCreate, "/m"), op(proto.OpDelete, "/none"), op(proto.OpDelete, "/m"))
		wantTrail(t, l, "create success /m "+ip, "setData success /m "+ip, "delete success /m "+ip,
			"multiOperation failure  "+ip+" -101 operation 2 of 3: delete /none")

		bob := dial()
		bob.connect(30_000, 0, make([]byte, 16))
		auth := func(r *raw, scheme, credentials string) {
			askRaw(r, proto.OpAuth, (&proto.AuthRequest{Scheme: scheme, Auth: []byte(credentials)}).Append(nil))
		}
		auth(bob, "digest", "bob:s3cret")
		const asBob = "[digest bob,ip 127.0.0.1]"
		makeZnode(bob, "/bob", 0, []proto.ACL{{Perms: proto.PermAll, ID: proto.ID{Scheme: "auth"}}})
		get := func(r *raw, path string) {
			askRaw(r, proto.OpGetData, (&proto.PathWatchRequest{Path: path}).Append(nil))
		}
		get(bob, "/bob")
		get(c, "/bob")
		get(c, "/a0000000000")
		get(c, "/read/x")
		get(c, "/readx")
		get(c, "/also")
		askRaw(c, proto.OpMultiRead, (&proto.MultiRequest{Ops: []proto.MultiOp{op(proto.OpGetData, "/bob"), op(proto.OpGetData, "/")}}).Append(nil))
		askRaw(c, proto.OpReconfig, (&proto.ReconfigRequest{}).Append(nil))
		wantTrail(t, l, "openSession success  "+ip, "authenticate success  "+asBob+" digest", "create success /bob "+asBob,
			"read failure /bob "+ip+" -102 getData", "read failure /read/x "+ip+" -101 getData", "read failure /also "+ip+" -101 getData",
			"read failure /bob "+ip+" -102 getData", "reconfig failure  "+ip+" -123")

		auth(bob, "nobody", "s3cret")
		wantTrail(t, l, "authenticate failure  "+asBob+" -115 nobody")
		again := dial()
		again.connect(30_000, c.id, c.pass)
		wantTrail(t, l, "resumeSession success  "+ip)
		again.call(1, proto.OpCloseSession, nil)
		wantTrail(t, l, "ephemeralZNodeDeletionOnSessionCloseOrExpire success /e []", "closeSession success  "+ip)
		dial().connect(30_000, c.id, c.pass)
		wantTrail(t, l, "resumeSession failure  "+ip+" -112")
		time.Sleep(2 * time.Minute) // virtual
		wantTrail(t, l, "expireSession success  []")
		word := dial()
		if _, err := word.nc.Write([]byte("srst")); err != nil {
			t.Fatal(err)
		}
		word.recvSome()
		wantTrail(t, l, "fourLetterWord success  "+ip+" srst")
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		wantTrail(t, l, "serverStop invoked  []")
	})
}

// While the log is full, the server reads no requests, sessions live on, and the server can stop.
func TestAudit_Backpressure(t *testing.T) {
	l := new(trail)
	serverBubble(t, server.Config{Audit: l, Tick: time.Second}, func(t *testing.T, s *server.Server, dial func() *raw) {
		c := dial()
		c.connect(4_000, 0, make([]byte, 16))
		l.setFull(true)
		// A pipe holds nothing, so that these wait until the server reads. They end with the
		// bubble.
		go c.request(1, proto.OpCreate, create{path: "/a", op: proto.OpCreate})
		late := dial()
		go late.send((&proto.ConnectRequest{TimeoutMs: 4_000, Passwd: make([]byte, 16)}).Append(nil))
		time.Sleep(time.Minute) // virtual
		synctest.Wait()
		wantTrail(t, l, "serverStart success  []", "openSession success  [ip 127.0.0.1]")
		l.setFull(false)
		if h, _ := c.reply(); h.Err != proto.OK {
			t.Errorf("the create got %v", h.Err)
		}
		if late.recv() == nil {
			t.Error("no session")
		}
		synctest.Wait()
		if got := l.take(); len(got) != 2 {
			t.Errorf("afterwards: %q", got)
		}
		l.setFull(true)
		// Ends when the server closes the connection.
		go func() {
			_, _ = c.nc.Write(append([]byte{0, 0, 0, 8, 0, 0, 0, 2}, 0, 0, 0, byte(proto.OpPing)))
		}()
		synctest.Wait()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	})
}
