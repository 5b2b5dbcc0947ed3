package datatree

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/gozkd/gozkd/proto"
)

// pagesModel holds what /p should list, beside a tree whose lists of more than a few children have
// an index.
type pagesModel struct {
	*limited
	session proto.SessionID
	epoch   proto.Zxid
	there   map[string]modelChild
}

type modelChild struct{ ephemeral, hidden bool }

var pagesReader = Caller{IDs: []proto.ID{{Scheme: "ip", ID: "127.0.0.1"}}}

func newPagesModel() *pagesModel {
	m := &pagesModel{limited: &limited{tree: New(Options{})}, there: make(map[string]modelChild)}
	m.tree.pages.from, m.tree.pages.chunk, m.tree.pages.work = 6, 4, 5
	res := m.limited.apply(proto.OpCreateSession, (&CreateSessionBody{TimeoutMs: 4000}).Append(nil))
	m.session, m.epoch = res.SessionID, res.Zxid
	m.createAt("/p", nil)
	m.createAt("/q", nil) // its children take numbers of deleted children of /p
	return m
}

// createOp creates a child of /p with its name as its data.
func (m *pagesModel) createOp(name string, is modelChild) proto.MultiOp {
	op := proto.MultiOp{Op: proto.OpCreate, Path: "/p/" + name, Data: []byte(name), ACL: proto.OpenACL()}
	if is.ephemeral {
		op.Mode = proto.ModeEphemeral
	}
	if is.hidden {
		op.ACL = []proto.ACL{{Perms: proto.PermRead, ID: proto.ID{Scheme: "digest", ID: "u:h"}}}
	}
	return op
}

// multi applies operations of the session, and reports whether they had an effect.
func (m *pagesModel) multi(ops ...proto.MultiOp) bool {
	r := Request{Op: proto.OpMulti, Session: m.session, ConnEpoch: m.epoch, Body: (&proto.MultiRequest{Ops: ops}).Append(nil)}
	res, _ := m.tree.Apply(Header{Zxid: m.tree.LastZxid() + 1, TimeMs: 1}, &r)
	return res.Err == proto.OK && !res.MultiFailed
}

// page returns what a page should show that leads to next.
func (m *pagesModel) page(r *proto.ListPageRequest, next *string) (page proto.ListPageResponse) {
	for _, name := range slices.Sorted(maps.Keys(m.there)) {
		if name < r.StartAfter || name == r.StartAfter && r.Flags&proto.PageFrom == 0 || next != nil && name > *next {
			continue
		}
		e, is := proto.PageEntry{Name: name}, m.there[name]
		filter := r.Flags & (proto.PageEphemeral | proto.PagePersistent)
		switch {
		case r.Flags&^proto.PageFrom != 0 && is.hidden:
			if e.Err = proto.ErrNoAuth; filter != 0 {
				continue
			}
		case filter == proto.PageEphemeral && !is.ephemeral, filter == proto.PagePersistent && is.ephemeral:
			continue
		case r.Flags&proto.PageData != 0:
			e.Data = []byte(name)
		}
		if r.Flags&proto.PageStat != 0 && e.Err == proto.OK {
			e.Stat, _ = m.tree.Exists("/p/"+name, Caller{SkipACL: true})
		}
		page.Entries = append(page.Entries, e)
	}
	page.Parent, _ = m.tree.Exists("/p", Caller{SkipACL: true})
	return page
}

// checkIndex compares the index of /p with the list: chunks hold the first built children, in order
// and within their bounds.
func (m *pagesModel) checkIndex() error {
	p := m.tree.get("/p")
	for dir := range m.tree.pages.of {
		if dir != p.dir {
			return fmt.Errorf("an index of list %d, /p has list %d", dir, p.dir)
		}
	}
	x := m.tree.pages.of[p.dir]
	if x == nil {
		return nil
	}
	children := m.tree.children(p)
	missing, entries := make(map[znodeID]bool), 0
	for _, id := range children[:x.built] {
		missing[id] = true
	}
	for i, c := range x.chunks {
		if len(c.ids) > m.tree.pages.chunk {
			return fmt.Errorf("chunk %d has %d children", i, len(c.ids))
		}
		entries += len(c.ids)
		before := ""
		for _, id := range c.ids {
			n := m.tree.znodes.Peek(id)
			if n == nil || n.first == nil || n.parent != p.id || int(n.childIdx) >= x.built {
				continue
			}
			name := n.name()
			if i > 0 && name < c.first || i+1 < len(x.chunks) && name >= x.chunks[i+1].first {
				continue
			}
			if c.sorted && name <= before {
				return fmt.Errorf("chunk %d: %q after %q", i, name, before)
			}
			before = name
			delete(missing, id)
		}
	}
	if len(missing) > 0 || entries != x.built+x.stale || x.built > len(children) || x.stale > len(children)+1 {
		return fmt.Errorf("children %v are not indexed; %d entries are %d and %d stale, of %d", missing, entries, x.built, x.stale, len(children))
	}
	return nil
}

// progress returns how many children are in the index of /p, and how many numbers are stale.
func (m *pagesModel) progress() (built, stale int) {
	if x := m.tree.pages.of[m.tree.get("/p").dir]; x != nil {
		return x.built, x.stale
	}
	return 0, 0
}

// TestPage_IsExact draws changes, pages and the dropping of indexes. Each page shows exactly the
// children up to the name that it leads to, or works on the index. Over an iteration, a name that
// was there from the first page to the last came exactly once, and any other name at most once.
func TestPage_IsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newPagesModel()
		name := func() string { return rapid.StringMatching(`[ab]{1,4}`).Draw(t, "name") }
		var cursor *string
		var always, seen map[string]bool // of the iteration
		for range rapid.IntRange(1, 150).Draw(t, "steps") {
			switch rapid.IntRange(0, 9).Draw(t, "step") {
			case 0, 1, 2:
				name, is := name(), modelChild{rapid.Bool().Draw(t, "ephemeral"), rapid.IntRange(0, 4).Draw(t, "hidden") == 0}
				if m.multi(m.createOp(name, is)) {
					m.there[name] = is
				} else {
					m.createAt("/q/"+name, nil)
				}
			case 3, 4:
				name := name()
				if m.multi(proto.MultiOp{Op: proto.OpDelete, Path: "/p/" + name, Version: -1}) {
					delete(m.there, name)
					delete(always, name)
				}
			case 5: // a multi that is rolled back
				ops := []proto.MultiOp{m.createOp(name(), modelChild{})}
				for _, name := range slices.Sorted(maps.Keys(m.there)) {
					ops = append(ops, proto.MultiOp{Op: proto.OpDelete, Path: "/p/" + name, Version: -1})
				}
				if m.multi(append(ops, proto.MultiOp{Op: proto.OpCheck, Path: "/none", Version: -1})...) {
					t.Fatal("a check of nothing passes")
				}
			case 6:
				for range rapid.SampledFrom([]int{1, maxIdlePages}).Draw(t, "ticks") {
					m.tree.AgePages()
				}
			default:
				r := proto.ListPageRequest{
					Path: "/p", Limit: rapid.Int32Range(0, 5).Draw(t, "limit"), Flags: proto.PageFlags(rapid.IntRange(0, 31).Draw(t, "flags")),
				}
				iterates := rapid.IntRange(0, 4).Draw(t, "iterates") > 0
				switch {
				case !iterates:
					r.StartAfter = name()
				case cursor == nil:
					always, seen = make(map[string]bool), make(map[string]bool)
					for name := range m.there {
						always[name] = true
					}
				default:
					r.StartAfter = *cursor
				}
				if iterates {
					r.Flags &^= proto.PageEphemeral | proto.PagePersistent | proto.PageFrom
				}
				built, stale := m.progress()
				page, code := m.tree.Page(&r, pagesReader)
				asked := r
				if len(page.Entries) == 0 && page.Next != nil && *page.Next == r.StartAfter {
					asked.Flags &^= proto.PageFrom // it comes again
				}
				if want := m.page(&asked, page.Next); code != proto.OK || fmt.Sprint(page.Entries, page.Parent) != fmt.Sprint(want.Entries, want.Parent) {
					t.Fatalf("%+v: %v, %+v\nwant %+v", r, code, page, want)
				}
				if r.Limit > 0 && len(page.Entries) > int(r.Limit) {
					t.Fatalf("%+v: %d entries", r, len(page.Entries))
				}
				if nowBuilt, nowStale := m.progress(); page.Next != nil && *page.Next <= r.StartAfter && len(page.Entries) == 0 && nowBuilt <= built && nowStale >= stale {
					t.Fatalf("%+v: no progress", r)
				} else if nowBuilt > built+m.tree.pages.work {
					t.Fatalf("%+v: the page added %d children to the index", r, nowBuilt-built)
				}
				if iterates {
					cursor = page.Next
					for _, e := range page.Entries {
						if seen[e.Name] {
							t.Fatalf("%q came twice", e.Name)
						}
						seen[e.Name] = true
					}
					for name := range always {
						if cursor == nil && !seen[name] {
							t.Fatalf("%q was there all the time, and did not come", name)
						}
					}
				}
			}
			if err := m.checkIndex(); err != nil {
				t.Fatal(err)
			}
		}
		if err := m.tree.Check(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestPage_IsBounded: a page has at most as many entries and bytes as its request and the server
// allow, and at least one entry. A filter that finds nothing examines a bounded number of children.
func TestPage_IsBounded(t *testing.T) {
	l := &limited{tree: New(Options{})}
	l.createAt("/p", nil)
	const n = 3*proto.MaxPageEntries + 5
	for i := range n {
		l.createAt(fmt.Sprintf("/p/%06d", i*7919%n), []byte("0123456789"))
	}
	full := func(r proto.ListPageRequest) (sizes []int, bytes int) {
		r.Path = "/p"
		for more := true; more; {
			page, code := l.tree.Page(&r, Caller{SkipACL: true})
			if code != proto.OK {
				t.Fatal(code)
			}
			if more = page.Next != nil; more && *page.Next == r.StartAfter {
				continue // the index is being built
			}
			sizes = append(sizes, len(page.Entries))
			bytes = max(bytes, proto.ReplyHeaderBytes+len(page.Append(nil, r.Flags)))
			if more {
				r.StartAfter = *page.Next
			}
		}
		return sizes, bytes
	}
	if sizes, _ := full(proto.ListPageRequest{}); !slices.Equal(sizes, []int{proto.MaxPageEntries, proto.MaxPageEntries, proto.MaxPageEntries, 5}) {
		t.Errorf("pages of %d", sizes)
	}
	if sizes, _ := full(proto.ListPageRequest{Flags: proto.PageEphemeral}); !slices.Equal(sizes, []int{0, 0}) {
		t.Errorf("pages of %d ephemeral znodes", sizes)
	}
	if sizes, _ := full(proto.ListPageRequest{Limit: proto.MaxPageEntries + 1}); sizes[0] != proto.MaxPageEntries {
		t.Errorf("pages of %d", sizes)
	}
	for _, flags := range []proto.PageFlags{0, proto.PageStat, proto.PageData, proto.PageStat | proto.PageData} {
		sizes, bytes := full(proto.ListPageRequest{MaxBytes: 5000, Flags: flags})
		if bytes > 5000 || sizes[0] < 20 {
			t.Errorf("flags %d: pages of %d, the longest of %d bytes", flags, sizes[:2], bytes)
		}
	}
	if sizes, _ := full(proto.ListPageRequest{MaxBytes: 1, StartAfter: fmt.Sprintf("%06d", n-9)}); !slices.Equal(sizes, slices.Repeat([]int{1}, 8)) {
		t.Errorf("pages of %d where one entry is too long", sizes)
	}
	if _, bytes := full(proto.ListPageRequest{MaxBytes: 1 << 30, Flags: proto.PageStat | proto.PageData}); bytes > proto.MaxPageBytes {
		t.Errorf("a page of %d bytes", bytes)
	}
}

// TestPage_FillsItsBytes: a page that takes exactly the allowed bytes has all its entries, and with
// a byte less it has one entry less.
func TestPage_FillsItsBytes(t *testing.T) {
	m := newPagesModel()
	for i := range 5 {
		m.createAt(fmt.Sprintf("/p/%d", i), []byte("data"))
	}
	r := proto.ListPageRequest{Path: "/p", Limit: 3, Flags: proto.PageStat | proto.PageData}
	page, _ := m.tree.Page(&r, pagesReader)
	r.Limit, r.MaxBytes = 0, int32(proto.ReplyHeaderBytes+len(page.Append(nil, r.Flags)))
	for want := 3; want > 1; want-- {
		if page, _ := m.tree.Page(&r, pagesReader); len(page.Entries) != want {
			t.Errorf("%d bytes have %d entries, want %d", r.MaxBytes, len(page.Entries), want)
		}
		r.MaxBytes--
	}
}

// The memory for the entries of a page is taken once, for as many as the client asked for.
func TestPage_Memory(t *testing.T) {
	l := &limited{tree: New(Options{})}
	l.createAt("/p", nil)
	for i := range 5000 {
		l.createAt(fmt.Sprintf("/p/%04d", i), nil)
	}
	for _, c := range []struct{ limit, maxBytes, entries, room int32 }{
		{1000, 0, 1000, 1000}, {0, 0, 5000, 5000}, {0, 1, 1, 1}, {7000, 1 << 14, 193, 239},
	} {
		r := proto.ListPageRequest{Path: "/p", Limit: c.limit, MaxBytes: c.maxBytes}
		page, _ := l.tree.Page(&r, pagesReader)
		if len(page.Entries) != int(c.entries) || cap(page.Entries) != int(c.room) {
			t.Errorf("%+v: %d entries in the room for %d", c, len(page.Entries), cap(page.Entries))
		}
	}
}

// TestPage_LongNames: names are in order whatever they have in common.
func TestPage_LongNames(t *testing.T) {
	m := newPagesModel()
	var want []string
	for i := range 16 {
		name := fmt.Sprintf("lock-%d-01234567-%d", i%4, 9-i/4)
		m.createAt("/p/"+name, nil)
		want = append(want, name)
	}
	if slices.Sort(want); !slices.Equal(m.names(), want) {
		t.Error(m.names())
	}
}

// TestRace_ReadersOfPages: goroutines may read pages of one list, and drop its index, at once. A
// page is in order whatever the others do. The race detector checks the rest.
func TestRace_ReadersOfPages(t *testing.T) {
	m := newPagesModel()
	for i := range 200 {
		m.createAt(fmt.Sprintf("/p/%03d", i*7%200), nil)
	}
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			seen := 0
			for r := (proto.ListPageRequest{Path: "/p", Limit: 3}); ; {
				page, code := m.tree.Page(&r, Caller{SkipACL: true})
				for _, e := range page.Entries {
					if e.Name != fmt.Sprintf("%03d", seen) {
						t.Errorf("%q comes as number %d", e.Name, seen)
					}
					seen++
				}
				if seen%10 == 0 {
					m.tree.AgePages()
				}
				if code != proto.OK || page.Next == nil {
					break
				}
				r.StartAfter = *page.Next
			}
			if seen != 200 {
				t.Errorf("%d names", seen)
			}
		})
	}
	readers.Wait()
}

func TestPage_Errors(t *testing.T) {
	m := newPagesModel()
	m.limited.apply(proto.OpCreate, (&proto.CreateRequest{Path: "/h", ACL: []proto.ACL{{Perms: proto.PermWrite, ID: proto.ID{Scheme: "world", ID: "anyone"}}}}).Append(nil, proto.OpCreate))
	for path, want := range map[string]proto.ErrCode{"/none": proto.ErrNoNode, "/h": proto.ErrNoAuth, "/p": proto.OK} {
		if page, code := m.tree.Page(&proto.ListPageRequest{Path: path}, pagesReader); code != want || len(page.Entries) > 0 || page.Next != nil {
			t.Errorf("%s: %v, %+v", path, code, page)
		}
	}
	if _, code := m.tree.Page(&proto.ListPageRequest{Path: "/p", Flags: 32}, pagesReader); code != proto.ErrBadArguments {
		t.Errorf("an unknown flag: %v", code)
	}
	page, _ := m.tree.Page(&proto.ListPageRequest{Path: "/"}, pagesReader)
	if fmt.Sprint(page.Entries) != fmt.Sprint([]proto.PageEntry{{Name: "h"}, {Name: "p"}, {Name: "q"}, {Name: "zookeeper"}}) {
		t.Errorf("the root: %+v", page)
	}
}
