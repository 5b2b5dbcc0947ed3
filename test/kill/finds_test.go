package kill

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gozkd/gozkd/proto"
)

// TestCheck_FindsTampering changes the server's state as a defect would, without the clients'
// knowledge, and expects check to find it.
func TestCheck_FindsTampering(t *testing.T) {
	s := newServer(t, build(t), options...)
	r := newRig(t, s, 1, 2, 1)
	must(t, r.bankers[0].transfer())
	r.visitors = []*visitor{{name: "v0", polite: true}}
	r.visitors[0].visit(t.Context(), r.addr, r.ledger)
	work := func() {
		for _, w := range r.workers {
			w.run(t.Context(), 300)
		}
	}
	work()
	r.check(t)
	r.verdict(t)
	c, err := open(t.Context(), r.addr, newSession(workerTimeout))
	must(t, err)
	w := r.workers[1]
	anyOf := func(k kind) string {
		i := slices.IndexFunc(w.held, func(o *op) bool { return o.kind == k })
		return w.held[i].path
	}
	call := func(code proto.OpCode, body []byte) {
		reply, err := c.call(code, body)
		must(t, err)
		if reply.Err != proto.OK {
			t.Fatal(reply.Err)
		}
	}
	remove := func(path string) {
		w.held = slices.DeleteFunc(w.held, func(o *op) bool { return o.path == path }) // so that the worker does not stumble over it first
		call(proto.OpDelete, (&proto.PathVersionRequest{Path: path, Version: -1}).Append(nil))
	}
	for _, p := range []struct {
		name   string
		tamper func()
		want   string
	}{
		{"an acknowledged sequential znode is gone", func() { remove(anyOf(seq)) }, "lost: /seq/"},
		{"an ephemeral is gone", func() { remove(anyOf(hold)) }, "ephemeral: /hold/"},
		{"an ephemeral has another owner", func() {
			p := anyOf(hold)
			data := strings.TrimPrefix(p, "/hold/")
			call(proto.OpDelete, (&proto.PathVersionRequest{Path: p, Version: -1}).Append(nil))
			must(t, c.create(p, data))
		}, "ephemeral: /hold/"},
		{"a znode that nobody made", func() { must(t, c.create("/seq/n-9", "nobody's")) }, "invented: /seq/n-9"},
		{"a create was carried out twice", func() { must(t, c.create("/seq/n-8", w.held[0].id)) }, " was carried out twice: "},
		{"a multi that failed left something", func() { must(t, c.create("/never/x", "")) }, "invented: /never/x"},
		{"a set that nobody made", func() { call(proto.OpSetData, setBody(w.own(), "x", -1)) }, "invented: version "},
		{"a set of a shared znode that nobody made", func() { call(proto.OpSetData, setBody(sharedPath(0), "x", -1)) }, "invented: "},
		{"half a multi", func() { call(proto.OpSetData, setBody(w.own()+"-b", "x 1", -1)) }, "lost: half a multi"},
		{"half a transfer", func() { call(proto.OpSetData, setBody(bankAccount(0), "7", -1)) }, "lost: the bank has"},
		{"a transfer without its receipt", func() { remove("/receipts/b0.1") }, "lost: /receipts/b0.1"},
		{"an ephemeral of a closed session", func() { must(t, c.create("/brief/v0.0", "")) }, "ephemeral: 1 of visitor v0"},
		{"a session is gone", func() {
			own, err := w.attach(t.Context())
			must(t, err)
			must(t, own.end())
		}, "ephemeral: the session of w1 is gone"},
	} {
		p.tamper()
		r.check(t)
		if !slices.ContainsFunc(r.ledger.faults, func(f string) bool { return strings.Contains(f, p.want) }) {
			t.Errorf("%s: want a fault with %q, got %q", p.name, p.want, r.ledger.faults)
		}
		r.ledger.faults = nil
	}
	must(t, c.end())
}

// TestCheck_FindsRollback gives the server an older copy of its data: consistent, but without
// writes that were acknowledged since.
func TestCheck_FindsRollback(t *testing.T) {
	s := newServer(t, build(t), options...)
	r := newRig(t, s, 2, 2, 0)
	work := func() {
		for _, w := range r.workers {
			w.run(t.Context(), 500)
		}
	}
	restart := func() {
		must(t, s.start())
		c, _, err := s.ready(t.Context())
		must(t, err)
		must(t, c.end())
	}
	work()
	s.kill()
	older := filepath.Join(t.TempDir(), "older")
	must(t, os.CopyFS(older, os.DirFS(s.dir)))
	restart()
	r.check(t)
	work()
	s.kill()
	r.verdict(t)
	must(t, os.RemoveAll(s.dir))
	must(t, os.CopyFS(s.dir, os.DirFS(older)))
	restart()
	r.check(t)
	for _, want := range []string{"lost: w0 has seen the zxid", "lost: /seq/", "lost: version ", "lost: version ", "ephemeral: /hold/"} {
		if !slices.ContainsFunc(r.ledger.faults, func(f string) bool { return strings.HasPrefix(f, want) }) {
			t.Errorf("want a fault that begins with %q, got %q", want, r.ledger.faults)
		}
	}
}

// TestCheck_FindsDisorder checks histories that only a defective server can produce.
func TestCheck_FindsDisorder(t *testing.T) {
	w := &worker{name: "w"}
	for _, p := range []struct {
		name string
		make func(l *ledger, r *record)
		want string
	}{
		{"a hole before a write that was carried out", func(l *ledger, r *record) {
			w.ops = []*op{{kind: seq, fate: applied, id: "1"}, {kind: move, fate: absent, id: "2"}, {kind: setShared, fate: unanswered}, {kind: drop, fate: applied, id: "3"}}
			r.prefixes(l, w)
		}, "order: 3 was carried out, but not 2"},
		{"a hole at the end of the connection before", func(l *ledger, r *record) {
			w.ops = []*op{{kind: seq, fate: absent, conn: 1, id: "1"}, {kind: seq, fate: applied, conn: 2, id: "2"}}
			r.prefixes(l, w)
		}, ""},
		{"a zxid given twice", func(l *ledger, _ *record) { l.ack("1", 7, 0); l.ack("2", 7, 0) }, "order: 1 and 2 both got the zxid"},
		{"a zxid too low", func(l *ledger, _ *record) { l.ack("1", 7, 0); l.ack("2", 6, l.floor()) }, "order: 2 got the zxid"},
		{"a zxid that goes back", func(l *ledger, _ *record) { w.ledger = l; w.see(9); w.see(8) }, "order: w saw the zxid"},
		{"a version made twice", func(l *ledger, _ *record) {
			l.shared["/s"] = &register{acked: map[int32]string{}, open: map[string]bool{}}
			l.setShared("/s", "1", 4, true)
			l.setShared("/s", "2", 4, true)
		}, "lost: 1 and 2 both made version 4"},
		{"a sequence number given twice", func(l *ledger, r *record) {
			r.made(l, w, &op{kind: seq, id: "1", path: "/seq/n-0000000003"})
			r.made(l, &worker{}, &op{kind: seq, id: "2", path: "/seq/n-0000000003"})
		}, "lost: /seq/n-0000000003 was given to 1 and to 2"},
		{"sequence numbers that fall", func(l *ledger, r *record) {
			r.made(l, w, &op{kind: seq, id: "1", path: "/seq/n-0000000003"})
			r.made(l, w, &op{kind: seq, id: "2", path: "/seq/n-0000000002"})
		}, "order: 2 got /seq/n-0000000002 after"},
	} {
		l := newLedger()
		p.make(l, newRecord())
		if got := strings.Join(l.faults, "; "); !strings.HasPrefix(got, p.want) || (p.want == "") != (got == "") {
			t.Errorf("%s: got %q, want %q", p.name, got, p.want)
		}
	}
}

// TestStart_RefusesDamage flips a byte in the middle of the log. The server must refuse to start,
// must name the file and the offset, and must leave the log unchanged: after the byte is restored,
// everything is there.
func TestStart_RefusesDamage(t *testing.T) {
	s := newServer(t, build(t), "preAllocSize=64")
	r := newRig(t, s, 3, 2, 0)
	for _, w := range r.workers {
		w.run(t.Context(), 2000)
	}
	s.kill()
	var segments []string
	must(t, filepath.WalkDir(filepath.Join(s.dir, "wal"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && filepath.Ext(path) == ".wal" {
			segments = append(segments, path)
		}
		return err
	}))
	if len(segments) < 3 {
		t.Fatalf("%d segments are too few to damage one in the middle", len(segments))
	}
	path := segments[len(segments)/2]
	flip := func() {
		b, err := os.ReadFile(path)
		must(t, err)
		b[len(bytes.TrimRight(b, "\x00"))/2] ^= 1
		must(t, os.WriteFile(path, b, 0o644))
	}
	flip()
	must(t, s.start())
	select {
	case <-s.ended:
	case <-time.After(patience):
		t.Fatal("the server runs on a damaged log")
	}
	if log := s.logTail(); s.endErr == nil || !strings.Contains(log, filepath.Base(path)) || !strings.Contains(log, "offset") {
		t.Errorf("the server ended with %v and does not say where the log is damaged (%s):\n%s", s.endErr, path, log)
	}
	flip()
	must(t, s.start())
	c, _, err := s.ready(t.Context())
	must(t, err)
	must(t, c.end())
	r.check(t)
	r.verdict(t)
}
