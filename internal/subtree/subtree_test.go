package subtree_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/internal/subtree"
	"github.com/gozkd/gozkd/internal/testkit/exhaustive"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server"
)

func walk(t testing.TB, c *client.Client, root string, o subtree.Options) (paths []string) {
	t.Helper()
	if err := subtree.Walk(t.Context(), c, root, o, func(n *subtree.Znode) error {
		paths = append(paths, n.Path)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return paths
}

// grow creates a tree of n znodes with random data and ACLs and returns their paths.
func grow(t testing.TB, c *client.Client, root string, n int, seed uint64) []string {
	t.Helper()
	return growWith(t, c, root, n, 300, seed)
}

// growWith is grow with data of up to maxData bytes.
func growWith(t testing.TB, c *client.Client, root string, n, maxData int, seed uint64) []string {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 0))
	paths := []string{root}
	create(t, c, client.CreateOptions{}, root)
	for i := range n - 1 {
		parent := paths[r.IntN(len(paths))]
		if r.IntN(3) == 0 { // also wide trees
			parent = paths[r.IntN(min(3, len(paths)))]
		}
		path := subtree.Join(parent, fmt.Sprintf("%c%d", 'a'+r.IntN(26), i))
		var data []byte
		switch r.IntN(4) {
		case 0:
		case 1:
			data = []byte{}
		case 2:
			data = []byte(fmt.Sprintf("text <%d> \u2028 \x00 \u00e9", i))
		case 3:
			data = make([]byte, r.IntN(maxData))
			for j := range data {
				data[j] = byte(r.Uint32())
			}
		}
		var o client.CreateOptions
		if r.IntN(3) == 0 {
			o.ACL = append(proto.ReadACL(), proto.ACL{Perms: proto.Perms(1 + r.IntN(31)), ID: proto.ID{Scheme: "ip", ID: "10.0.0.1"}},
				proto.ACL{Perms: proto.PermCreate | proto.PermDelete | proto.PermAdmin, ID: proto.ID{Scheme: "world", ID: "anyone"}})
		}
		if _, _, err := c.Create(t.Context(), path, data, o); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	return paths
}

// TestWalk_Order: siblings are sorted by name, whatever the shape, with more znodes than are read
// ahead.
func TestWalk_Order(t *testing.T) {
	c, _ := start(t)
	for seed := range uint64(3) {
		root := fmt.Sprintf("/t%d", seed)
		want := grow(t, c, root, exhaustive.Or(500, 1500), seed)
		slices.SortFunc(want, func(a, b string) int {
			return slices.Compare(strings.Split(a, "/"), strings.Split(b, "/"))
		})
		for _, o := range []subtree.Options{{Below: subtree.All}, {Data: true, ACL: true, Below: subtree.All}} {
			if got := walk(t, c, root, o); !slices.Equal(got, want) {
				t.Errorf("seed %d: %d of %d paths, or another order", seed, len(got), len(want))
			}
		}
		level := slices.DeleteFunc(slices.Clone(want), func(p string) bool { return strings.Count(p, "/") > 2 })
		if got := walk(t, c, root, subtree.Options{Below: 1}); !slices.Equal(got, level) {
			t.Errorf("seed %d: one level has %d of %d", seed, len(got), len(level))
		}
	}
	if got := walk(t, c, "/", subtree.Options{Below: 1, NoSystem: true}); !slices.Equal(got, []string{"/", "/t0", "/t1", "/t2"}) {
		t.Errorf("%q", got)
	}
}

func TestWalk_Root(t *testing.T) {
	c, _ := start(t)
	for _, o := range []subtree.Options{{}, {Below: subtree.All}, {Data: true}} {
		err := subtree.Walk(t.Context(), c, "/none", o, func(*subtree.Znode) error { return nil })
		if !errors.Is(err, proto.ErrNoNode) {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

// TestWalk_Denied: znodes that may not be read are reported, and nothing below them.
func TestWalk_Denied(t *testing.T) {
	c, _ := start(t)
	create(t, c, client.CreateOptions{}, "/t", "/t/a", "/t/b", "/t/b/x", "/t/c")
	if _, err := c.SetACL(t.Context(), "/t/b", []proto.ACL{{Perms: proto.PermWrite, ID: proto.ID{Scheme: "world", ID: "anyone"}}}, -1); err != nil {
		t.Fatal(err)
	}
	var got []string
	err := subtree.Walk(t.Context(), c, "/t", subtree.Options{Below: subtree.All}, func(n *subtree.Znode) error {
		got = append(got, fmt.Sprint(n.Path, " ", n.Denied != nil))
		return nil
	})
	if want := []string{"/t false", "/t/a false", "/t/b true", "/t/c false"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v", got, err)
	}
}

// TestWalk_WhileOthersWrite: deleted znodes are not errors, all others are seen, and broken
// connections do no harm.
func TestWalk_WhileOthersWrite(t *testing.T) {
	c, w := start(t)
	other := connect(t, w)
	stay := grow(t, c, "/t", 300, 7)
	stop := make(chan struct{})
	var writer sync.WaitGroup
	writer.Go(func() { // ends when stop is closed
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			if i%100 == 99 {
				w.breakAll()
			}
			path := subtree.Join(stay[i%len(stay)], "~gone")
			_, _, _ = other.Create(context.Background(), path, nil, client.CreateOptions{}) // success does not matter
			_ = other.Delete(context.Background(), path, -1)
		}
	})
	for range 5 {
		seen := walk(t, c, "/t", subtree.Options{Data: true, ACL: true, Below: subtree.All})
		seen = slices.DeleteFunc(seen, func(p string) bool { return strings.HasSuffix(p, "~gone") })
		if len(seen) != len(stay) {
			t.Errorf("saw %d of %d", len(seen), len(stay))
		}
	}
	close(stop)
	writer.Wait()
}

// TestWalk_Stops: an error of visit is returned, and no goroutine is left.
func TestWalk_Stops(t *testing.T) {
	c, _ := start(t)
	grow(t, c, "/t", 500, 1)
	n := 0
	err := subtree.Walk(t.Context(), c, "/t", subtree.Options{Below: subtree.All}, func(*subtree.Znode) error {
		if n++; n == 100 {
			return io.ErrClosedPipe
		}
		return nil
	})
	if !errors.Is(err, io.ErrClosedPipe) || n != 100 {
		t.Errorf("%v after %d", err, n)
	}
}

func export(t testing.TB, c *client.Client, root string) ([]byte, *subtree.Exported) {
	t.Helper()
	var b bytes.Buffer
	e, err := subtree.Export(t.Context(), subtree.Side{ZK: c, Path: root}, true, &b, func(*subtree.Exported) {})
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes(), e
}

func diff(t testing.TB, a, b subtree.Side) (changes []string) {
	t.Helper()
	if _, err := subtree.Diff(t.Context(), a, b, true, func(c subtree.Change) error {
		changes = append(changes, fmt.Sprint(c.Rel, " ", c.Left != nil, c.Right != nil, c.Data, c.ACL, c.Ephemeral))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return changes
}

// TestExportImport: the import on another server is identical, even if connections break.
func TestExportImport(t *testing.T) {
	c, _ := start(t)
	other, w := start(t)
	n := int64(len(grow(t, c, "/t", 2000, 3)))
	text, e := export(t, c, "/t")
	if e.Znodes != n {
		t.Errorf("exported %d of %d", e.Znodes, n)
	}
	l := &subtree.Loader{ZK: other, To: "/copy", Counters: subtree.Counters{Limit: noLimit}}
	written := 0
	l.Seen = func(*subtree.Loader) {
		if written++; written%2 == 0 {
			w.breakAll()
		}
	}
	if err := l.Load(t.Context(), bytes.NewReader(text)); err != nil || l.Created != n {
		t.Fatalf("created %d of %d: %v", l.Created, n, err)
	}
	if d := diff(t, subtree.Side{ZK: c, Path: "/t"}, subtree.Side{ZK: other, Path: "/copy"}); d != nil {
		t.Errorf("%q", d)
	}
	again, _ := export(t, other, "/copy")
	_, a, _ := bytes.Cut(text, []byte("\n"))
	_, b, _ := bytes.Cut(again, []byte("\n"))
	if !bytes.Equal(a, b) {
		t.Error("the export of the copy is another text")
	}
}

func TestImport_Existing(t *testing.T) {
	c, _ := start(t)
	create(t, c, client.CreateOptions{}, "/t", "/t/a", "/t/b", "/u")
	text, _ := export(t, c, "/t")
	create(t, c, client.CreateOptions{}, "/u/a")
	l := &subtree.Loader{ZK: c, To: "/u"}
	if err := l.Load(t.Context(), bytes.NewReader(text)); !errors.Is(err, proto.ErrNodeExists) || l.Created != 0 {
		t.Errorf("%v, created %d", err, l.Created)
	}
	l = &subtree.Loader{ZK: c, To: "/u", Existing: subtree.Keep}
	if err := l.Load(t.Context(), bytes.NewReader(text)); err != nil || l.Created != 1 || l.Kept != 2 {
		t.Errorf("%v, created %d, kept %d", err, l.Created, l.Kept)
	}
	if data, _, err := c.Get(t.Context(), "/u/a", false); err != nil || string(data) != "data of /u/a" {
		t.Errorf("%q, %v", data, err)
	}
	l = &subtree.Loader{ZK: c, To: "/u", Existing: subtree.Replace}
	if err := l.Load(t.Context(), bytes.NewReader(text)); err != nil || l.Created != 0 || l.Changed != 3 {
		t.Errorf("%v, created %d, changed %d", err, l.Created, l.Changed)
	}
	if d := diff(t, subtree.Side{ZK: c, Path: "/t"}, subtree.Side{ZK: c, Path: "/u"}); d != nil {
		t.Errorf("%q", d)
	}
}

// TestImport_Kinds: containers, TTLs and ephemerals, which an export may contain although clients
// cannot see the first two.
func TestImport_Kinds(t *testing.T) {
	c, _ := start(t)
	text := `{"gozkd_export":1,"root":"/x","zxid":"0x1"}
{"path":"/"}
{"path":"/c","kind":"container","data":"x"}
{"path":"/e","kind":"ephemeral","owner":"0x1"}
{"path":"/t","kind":"ttl","ttl_ms":100000}
{"end":true,"znodes":4}
`
	l := &subtree.Loader{ZK: c, To: "/k"}
	if err := l.Load(t.Context(), strings.NewReader(text)); err != nil || l.Created != 3 || l.Skipped != 1 {
		t.Fatalf("%v, created %d, skipped %d", err, l.Created, l.Skipped)
	}
	l = &subtree.Loader{ZK: c, To: "/k", Existing: subtree.Keep, Ephemerals: true}
	if err := l.Load(t.Context(), strings.NewReader(text)); err != nil || l.Created != 1 {
		t.Fatalf("%v, created %d", err, l.Created)
	}
	if mine, err := c.Ephemerals(t.Context(), "/k"); err != nil || !slices.Equal(mine, []string{"/k/e"}) {
		t.Errorf("%q, %v", mine, err)
	}
}

func TestReader_Refuses(t *testing.T) {
	const head = `{"gozkd_export":1,"root":"/x","zxid":"0x1"}` + "\n"
	for _, c := range []struct{ text, want string }{
		{"", "it is empty"},
		{"hello\n", "not an export"},
		{`{"gozkd_export":2,"root":"/","zxid":"0x1"}` + "\n", "export format 2"},
		{head, "is truncated"},
		{head + `{"path":"/a"}` + "\n", "is truncated"},
		{head + `{"path":"/a"}` + "\n" + `{"end":true,"znodes":2}` + "\n", "has 1 znodes"},
		{head + `{"path":"a"}` + "\n", "line 2: "},
		{head + `{"path":"/a/../b"}` + "\n", "line 2: "},
		{head + `{"path":"/a","kind":"odd"}` + "\n", "unknown kind"},
		{head + `{"path":"/a","kind":"ttl"}` + "\n", "ttl_ms 0"},
		{head + `{"path":"/a","kind":"ttl","ttl_ms":18446744073710}` + "\n", "ttl_ms 18446744073710"},
		{head + `{"path":"/a","colour":1}` + "\n", "unknown field"},
		{head + `{"path":"/a","creations":-1}` + "\n", "creations -1: must be"},
		{head + `{"path":"/a","creations":2147483648}` + "\n", "creations 2147483648: must be"},
		{head + `{"path":"/a"} {}` + "\n", "data after"},
		{head + `{"path":"/a","data":"x","data_base64":"eA=="}` + "\n", "data and data_base64"},
		{head + `{"path":"/a","acl":[{"scheme":"world","id":"anyone","perms":"q"}]}` + "\n", "permissions"},
	} {
		r, err := subtree.NewReader(strings.NewReader(c.text))
		for err == nil {
			_, err = r.Next()
		}
		if !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.text, err, c.want)
		}
	}
}

func TestDiff(t *testing.T) {
	c, _ := start(t)
	create(t, c, client.CreateOptions{}, "/a", "/a/same", "/a/x", "/a/x/y", "/a/x!", "/a/data")
	text, _ := export(t, c, "/a")
	if err := (&subtree.Loader{ZK: c, To: "/b"}).Load(t.Context(), bytes.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{"/a/x/y", "/b/x!"} {
		if err := c.Delete(t.Context(), p, -1); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.Set(t.Context(), "/b/data", nil, -1); err != nil {
		t.Fatal(err)
	}
	if _, err := c.SetACL(t.Context(), "/b/x", proto.ReadACL(), -1); err != nil {
		t.Fatal(err)
	}
	create(t, c, client.CreateOptions{Ephemeral: true}, "/b/new")
	got := diff(t, subtree.Side{ZK: c, Path: "/a"}, subtree.Side{ZK: c, Path: "/b"})
	want := []string{
		"/data true true true false false", "/new false true false false false", "/x true true false true false",
		"/x/y false true false false false", "/x! true false false false false",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// BenchmarkWalk walks a tree of 10,000 znodes on a server in this process.
func BenchmarkWalk(b *testing.B) {
	c, _ := start(b)
	grow(b, c, "/t", 10_000, 1)
	for _, o := range []subtree.Options{{Below: subtree.All}, {Data: true, ACL: true, Below: subtree.All}} {
		b.Run(fmt.Sprintf("data=%v", o.Data), func(b *testing.B) {
			for b.Loop() {
				walk(b, c, "/t", o)
			}
			b.ReportMetric(float64(b.N)*10_000/b.Elapsed().Seconds(), "znodes/s")
		})
	}
}

// A replaced znode gets its ACL before its data: if the ACL is refused, the data is as before.
func TestImport_ACLBeforeData(t *testing.T) {
	c, _ := start(t)
	create(t, c, client.CreateOptions{}, "/t", "/t/a", "/u")
	text, _ := export(t, c, "/t")
	withoutAdmin := []proto.ACL{{Perms: proto.PermAll &^ proto.PermAdmin, ID: proto.ID{Scheme: "world", ID: "anyone"}}}
	if _, _, err := c.Create(t.Context(), "/u/a", []byte("old"), client.CreateOptions{ACL: withoutAdmin}); err != nil {
		t.Fatal(err)
	}
	l := &subtree.Loader{ZK: c, To: "/u", Existing: subtree.Replace}
	if err := l.Load(t.Context(), bytes.NewReader(text)); !errors.Is(err, proto.ErrNoAuth) {
		t.Error(err)
	}
	if data, _, err := c.Get(t.Context(), "/u/a", false); err != nil || string(data) != "old" {
		t.Errorf("%q, %v", data, err)
	}
}

// The largest znode that a client can create is copied and imported as well, although a transaction
// with it would be too long.
func TestWriter_LargestZnode(t *testing.T) {
	const limit = 10_000
	c, _ := start(t, func(c *server.Config) { c.MaxBuffer = limit })
	create(t, c, client.CreateOptions{}, "/s", "/t", "/u", "/u/big")
	// The header, the path, the length of the data, the ACL and the flags.
	const others = 8 + (4 + len("/s/big")) + 4 + (4 + 4 + 4 + len("world") + 4 + len("anyone")) + 4
	data := make([]byte, limit-others)
	if _, _, err := c.Create(t.Context(), "/s/big", data, client.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	text, _ := export(t, c, "/s/big")
	l := &subtree.Loader{ZK: c, To: "/u/big", Existing: subtree.Replace}
	if err := l.Load(t.Context(), bytes.NewReader(text)); err != nil {
		t.Error(err)
	}
	m := &subtree.Mirror{From: subtree.Side{ZK: c, Path: "/s/big"}, To: subtree.Side{ZK: c, Path: "/t/big"}}
	if _, err := m.Run(t.Context(), nil); err != nil {
		t.Error(err)
	}
	for _, path := range []string{"/t/big", "/u/big"} {
		if got, _, err := c.Get(t.Context(), path, false); err != nil || len(got) != len(data) {
			t.Errorf("%s: %d bytes, want %d: %v", path, len(got), len(data), err)
		}
	}
}

// The error of a write whose connection was lost each time names the largest znode.
func TestImport_TooLarge(t *testing.T) {
	c, _ := start(t)
	_, small := start(t, func(c *server.Config) { c.MaxBuffer = 10_000 })
	create(t, c, client.CreateOptions{}, "/s", "/s/a", "/s/b")
	if _, err := c.Set(t.Context(), "/s/b", make([]byte, 20_000), -1); err != nil {
		t.Fatal(err)
	}
	text, _ := export(t, c, "/s")
	l := &subtree.Loader{ZK: connect(t, small), To: "/t"}
	err := l.Load(t.Context(), bytes.NewReader(text))
	want := "/t/b with 20000 bytes: if the server is reachable, raise its jute.maxbuffer"
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Error(err)
	}
}
