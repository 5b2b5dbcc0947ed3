package datatree_test

import (
	"maps"
	"slices"
	"strings"

	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
	"pgregory.net/rapid"
)

// read compares one path as one caller sees it.
func (s *machine) read(t *rapid.T) {
	s.compareReads(t, s.path(t), datatree.Caller{IDs: anyIDs.Draw(t, "ids"), SkipACL: rapid.IntRange(0, 3).Draw(t, "skip") == 0})
}

func (s *machine) compareReads(t *rapid.T, path string, c datatree.Caller) {
	n := s.model.at(path)
	code, stat, aclCode := proto.ErrNoNode, proto.Stat{}, proto.ErrNoNode
	if n != nil {
		if code = proto.ErrNoAuth; permitted(n.acl, proto.PermRead, c) {
			code, stat = proto.OK, s.model.stat(path)
		}
		if aclCode = proto.ErrNoAuth; permitted(n.acl, proto.PermRead|proto.PermAdmin, c) {
			aclCode = proto.OK
		}
	}
	existsCode := code
	if strings.Contains(path, "\x00") {
		existsCode = proto.ErrBadArguments
	}
	if got, err := s.tree.Exists(path, c); got != stat || err != existsCode {
		t.Fatalf("Exists(%q, %v): got %+v %v, want %+v %v", path, c, got, err, stat, existsCode)
	}
	data, got, err := s.tree.GetData(path, c)
	if got != stat || err != code || code == proto.OK && (string(data) != string(n.data) || !n.birth && (data == nil) != (n.data == nil)) {
		t.Fatalf("GetData(%q, %v): got %q (null: %t) %+v %v, want %+v %+v %v", path, c, data, data == nil, got, err, n, stat, code)
	}
	s.compareChildren(t, path, c, stat, code)
	list, got, err := s.tree.GetACL(path, c)
	if err != aclCode || aclCode == proto.OK && (got != s.model.stat(path) || !slices.Equal(list, shownACL(n.acl, c))) {
		t.Fatalf("GetACL(%q, %v): got %v %+v %v, want %v of %+v", path, c, list, got, err, aclCode, n)
	}
	m, p, ok := s.tree.Lookup(path)
	if ok != (n != nil) || ok && (m != n.mzxid || p != n.pzxid) {
		t.Fatalf("Lookup(%q): got %v %v %t, want %+v", path, m, p, ok, n)
	}
}

func (s *machine) compareChildren(t *rapid.T, path string, c datatree.Caller, stat proto.Stat, code proto.ErrCode) {
	head := []byte("kept")
	out, got, err := s.tree.AppendChildren(head, path, c)
	if got != stat || err != code || !strings.HasPrefix(string(out), "kept") {
		t.Fatalf("AppendChildren(%q, %v): got %+v %v, want %+v %v", path, c, got, err, stat, code)
	}
	total, err := s.tree.AllChildrenNumber(path, c)
	if err != code {
		t.Fatalf("AllChildrenNumber(%q, %v): got %v, want %v", path, c, err, code)
	}
	if code != proto.OK {
		return
	}
	if path == "" { // counts the root too, as in ZooKeeper 3.9.5
		path, total = "/", total-1
	}
	d := jute.NewDecoder(out[len(head):])
	children := d.Strings()
	slices.Sort(children)
	if d.Err() != nil || d.Remaining() != 0 || !slices.Equal(children, s.model.children(path)) {
		t.Fatalf("AppendChildren(%q): got %q %v, want %q", path, children, d.Err(), s.model.children(path))
	}
	want := int32(-1)
	for p := range s.model.nodes {
		if below(p, path) {
			want++
		}
	}
	if total != want {
		t.Fatalf("AllChildrenNumber(%q): got %d, want %d", path, total, want)
	}
}

// compareAll compares all znodes and, by the lists of children, that there are no others.
func (s *machine) compareAll(t *rapid.T) {
	s.compareEnsemble(t)
	ephemerals := make(map[proto.SessionID][]string)
	count := 0
	for _, path := range slices.Sorted(maps.Keys(s.model.nodes)) {
		for _, ids := range callers {
			s.compareReads(t, path, datatree.Caller{IDs: ids})
		}
		if n := s.model.nodes[path]; n.kind == ephemeral {
			ephemerals[n.owner] = append(ephemerals[n.owner], path)
			count++
		}
	}
	if got, want := s.tree.NumZnodes(), len(s.model.nodes)+1; got != want {
		t.Fatalf("NumZnodes = %d, want %d", got, want)
	}
	if got := maps.Collect(s.tree.EphemeralsBySession()); s.tree.NumEphemerals() != count || !maps.EqualFunc(got, ephemerals, slices.Equal) {
		t.Fatalf("ephemerals: got %d %v, want %v", s.tree.NumEphemerals(), got, ephemerals)
	}
	ids := slices.Sorted(maps.Keys(s.model.sessions))
	infos := slices.Collect(s.tree.Sessions())
	if len(infos) != len(ids) || s.tree.NumSessions() != len(ids) {
		t.Fatalf("sessions: got %+v, want %v", infos, ids)
	}
	for i, id := range ids {
		m := s.model.sessions[id]
		want := datatree.SessionInfo{
			ID: id, TimeoutMs: m.timeout, ConnEpoch: m.epoch, Server: m.server, Passwd: m.passwd, NumEphemerals: len(ephemerals[id]),
		}
		if got, ok := s.tree.Session(id); !ok || got != want || infos[i] != want {
			t.Fatalf("session %v: got %+v and %+v, want %+v", id, got, infos[i], want)
		}
		s.compareEphemerals(t, id, ephemerals[id])
	}
}

func (s *machine) compareEphemerals(t *rapid.T, id proto.SessionID, all []string) {
	for _, prefix := range []string{"", " ", "/", "/a", "/a/", "/zoo"} {
		var want []string
		for _, path := range all {
			if strings.TrimSpace(prefix) == "" || strings.HasPrefix(path, prefix) {
				want = append(want, path)
			}
		}
		if got := s.tree.Ephemerals(id, &prefix); !slices.Equal(got, want) {
			t.Fatalf("Ephemerals(%v, %q): got %q, want %q", id, prefix, got, want)
		}
	}
	if got := s.tree.Ephemerals(id, nil); !slices.Equal(got, all) {
		t.Fatalf("Ephemerals(%v, null): got %q, want %q", id, got, all)
	}
}
