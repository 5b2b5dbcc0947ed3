package datatree

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/gozkd/gozkd/internal/zkfiles"
	"github.com/gozkd/gozkd/proto"
)

// A list is told when it becomes longer than the limit, and once more only after it was shorter
// than half of the limit.
func TestLongLists(t *testing.T) {
	var told []string
	const limit = 16 + 4 + 68 + 4*(4+10) // the bytes of four names
	l := &limited{tree: New(Options{ListBytes: limit, LongList: func(path string, bytes int) {
		told = append(told, fmt.Sprint(path, " ", bytes-limit))
	}})}
	name := func(parent string, i int) string { return fmt.Sprintf("%s/%010d", parent, i) }
	have := make(map[string]int)
	children := func(parent string, n int) {
		for ; have[parent] < n; have[parent]++ {
			l.createAt(name(parent, have[parent]), nil)
		}
		for ; have[parent] > n; have[parent]-- {
			l.apply(proto.OpDelete, (&proto.PathVersionRequest{Path: name(parent, have[parent]-1), Version: -1}).Append(nil))
		}
	}
	long := func() (list []string) {
		l.tree.LongLists(func(path string, bytes int) { list = append(list, fmt.Sprint(path, " ", bytes-limit)) })
		return list
	}
	expect := func(wantTold, wantLong string) {
		t.Helper()
		if got := strings.Join(told, ", "); got != wantTold {
			t.Errorf("told %s, want %s", got, wantTold)
		}
		if got := strings.Join(long(), ", "); got != wantLong {
			t.Errorf("long %s, want %s", got, wantLong)
		}
		told = nil
	}
	l.createAt("/b", nil)
	l.createAt("/a", nil)
	children("/b", 4)
	expect("", "")
	children("/b", 6)
	children("/a", 5)
	expect("/b 14, /a 14", "/a 14, /b 28")
	if got := l.tree.LongestList(); got != limit+28 {
		t.Errorf("the longest list has %d bytes", got)
	}
	children("/b", 4)
	children("/b", 5)
	expect("", "/a 14, /b 14")
	children("/a", 4)
	expect("", "/b 14")
	l.tree.lists.limit = 2 * (limit - 3*14) // half of the limit is the length of a list of one
	children("/b", 1)
	children("/b", 9)
	expect("", "/b 70")
	l.tree.lists.limit += 2
	children("/b", 1)
	children("/b", 9)
	expect("/b 70", "/b 70")
	// The list of a parent without children is told again, however low the limit is.
	l.tree.lists.limit = 0
	l.createAt("/c", nil)
	told = nil
	children("/c", 1)
	children("/c", 0)
	children("/c", 1)
	if len(told) != 2 {
		t.Errorf("told %v", told)
	}
	if got, want := l.tree.childrenReplyBytes(l.tree.get("/c/0000000000"), "name"), 16+4+4+4+68; got != want {
		t.Errorf("a first child makes the list %d bytes long, want %d", got, want)
	}
}

// A snapshot for ZooKeeper has each znode after its parent, with the number of its list.
func TestZooKeeperZnodes(t *testing.T) {
	l := &limited{tree: fuzzEnsemble(t)}
	create := func(path string, acl []proto.ACL) {
		l.apply(proto.OpCreate, (&proto.CreateRequest{Path: path, Data: []byte("data"), ACL: acl}).Append(nil, proto.OpCreate))
	}
	create("/gone", []proto.ACL{{Perms: proto.PermAll, ID: proto.ID{Scheme: "ip", ID: "10.0.0.1"}}})
	create("/last", []proto.ACL{{Perms: proto.PermAll, ID: proto.ID{Scheme: "ip", ID: "10.0.0.2"}}})
	l.apply(proto.OpDelete, (&proto.PathVersionRequest{Path: "/gone", Version: -1}).Append(nil))
	lists := l.tree.ZooKeeperACLs()
	var all []string
	most := 100
	stop := errors.New("stop")
	yield := func(z *zkfiles.Znode) error {
		acl := proto.OpenACL()
		if z.ACL != zkfiles.OpenKey {
			acl = lists[z.ACL-1]
		}
		all = append(all, fmt.Sprintf("%s %q %v", z.Path, z.Data, acl))
		if len(all) == most {
			return stop
		}
		return nil
	}
	if err := l.tree.ZooKeeperZnodes(yield); err != nil {
		t.Error(err)
	}
	open, read := "[{31 {world anyone}}]", "[{1 {world anyone}}]"
	want := []string{
		`/ "" ` + open, `/fuzz "" ` + open, `/fuzz/e "" [{31 {digest u:h}}]`, `/last "data" [{31 {ip 10.0.0.2}}]`,
		`/zookeeper "" ` + open, `/zookeeper/config "" ` + read, `/zookeeper/quota "" ` + open,
	}
	if !slices.Equal(all, want) {
		t.Errorf("exported:\n%s\nwant:\n%s", strings.Join(all, "\n"), strings.Join(want, "\n"))
	}
	if free := lists[slices.Index(l.tree.acls.lists, nil)]; !isOpen(free) {
		t.Errorf("the list that nobody has is %v", free)
	}
	for most = range len(want) + 1 {
		if all = nil; most > 0 {
			if err := l.tree.ZooKeeperZnodes(yield); !errors.Is(err, stop) || len(all) != most {
				t.Errorf("%d of %d: %v", len(all), most, err)
			}
		}
	}
	var owners []string
	for _, op := range []proto.OpCode{proto.OpCreateContainer, proto.OpCreateTTL} {
		r := &proto.CreateRequest{Path: fmt.Sprint("/", int(op)), ACL: proto.OpenACL(), Mode: proto.ModeContainer}
		if op == proto.OpCreateTTL {
			r.Mode, r.TTL = proto.ModePersistentTTL, 77
		}
		l.apply(op, r.Append(nil, op))
	}
	for path, ttl := range l.tree.ContainersAndTTLs() {
		owners = append(owners, fmt.Sprint(path, " ", ttl))
	}
	if got := fmt.Sprint(owners); got != "[/19 0 /21 77]" {
		t.Error(got)
	}
	for range l.tree.ContainersAndTTLs() {
		break
	}
}

// What walks through the state stops when its caller does.
func TestWalk(t *testing.T) {
	tree := checkTree(t)
	r := &proto.CreateRequest{Path: "/ttl", ACL: proto.OpenACL(), Mode: proto.ModePersistentTTL, TTL: 77}
	tree.Apply(Header{tree.LastZxid() + 1, 1}, &Request{Op: proto.OpCreateTTL, Body: r.Append(nil, proto.OpCreateTTL)})
	for _, c := range []struct {
		path, last string
		want       string
	}{
		{"/fuzz", "", "/fuzz 0 0, /fuzz/e 1 0"},
		{"/", "/zookeeper", "/ 0 0, /container 4 0, /fuzz 0 0, /fuzz/e 1 0, /large 0 0, /ttl 5 77, /zookeeper 0 0"},
		{"", "/fuzz/e", "/ 0 0, /container 4 0, /fuzz 0 0, /fuzz/e 1 0"},
		{"/", "/", "/ 0 0"},
		{"/missing", "", ""},
	} {
		var got []string
		there := tree.Walk(c.path, func(z proto.Znode) bool {
			got = append(got, fmt.Sprintf("%s %d %d", z.Path, z.Mode, z.TTLMs))
			return z.Path != c.last
		})
		if s := strings.Join(got, ", "); s != c.want || there != (c.want != "") {
			t.Errorf("%s to %s: %s, want %s; there is one: %v", c.path, c.last, s, c.want, there)
		}
	}
	if s, ok := tree.Session(99); ok || s != (SessionInfo{}) {
		t.Errorf("a session of nobody: %+v", s)
	}
	for s := range tree.Sessions() {
		if s.ID != fuzzSession {
			t.Errorf("the first session is %v", s.ID)
		}
		break
	}
	body := (&proto.CreateRequest{Path: "/e", ACL: proto.OpenACL(), Mode: 1}).Append(nil, proto.OpCreate)
	other, _ := tree.Session(otherSession)
	tree.Apply(Header{tree.LastZxid() + 1, 1}, &Request{Op: proto.OpCreate, Session: otherSession, ConnEpoch: other.ConnEpoch, Body: body})
	for s, paths := range tree.EphemeralsBySession() {
		if s != fuzzSession || fmt.Sprint(paths) != "[/fuzz/e]" {
			t.Errorf("the first session %v has %v", s, paths)
		}
		break
	}
}
