package datatree

import (
	"cmp"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/gozkd/gozkd/proto"
)

// pageIndexes orders the children of some znodes by name, so that the cost of a page of a long list
// depends on the page alone. They are no part of the state: each server has those that its clients
// use. See docs/adr/0018-pages-of-children.md.
type pageIndexes struct {
	mu sync.Mutex            // guards the fields below; a change of the tree excludes those who lock it
	of map[uint32]*pageIndex // by znode.dir

	names []pageName // scratch of load

	// Constants that tests lower.
	from, chunk, work int // the shortest list with an index, numbers in a chunk, work per page
}

// maxIdlePages is after how many calls of AgePages without a page an index is dropped.
const maxIdlePages = 600

// pageIndex holds the first built children of a list: changes of the tree only move a child between
// the two parts of the list. Besides them, the chunks have stale numbers, of children that were
// removed; a number may have become that of another child since.
type pageIndex struct {
	chunks []pageChunk // in the order of their names
	built  int
	stale  int
	idle   int // calls of AgePages since the last page
}

// pageChunk holds children whose names are not before first, and before first of the next chunk.
type pageChunk struct {
	first  string
	ids    []znodeID
	sorted bool // except for stale numbers
}

// pageName is a child with its name, and eight bytes of that.
type pageName struct {
	bytes uint64
	id    znodeID
	name  string
}

// AgePages drops the indexes that no page used during the last maxIdlePages calls.
func (s *znodeStore) AgePages() {
	s.pages.mu.Lock()
	defer s.pages.mu.Unlock()
	for dir, x := range s.pages.of {
		if x.idle++; x.idle > maxIdlePages {
			delete(s.pages.of, dir)
		}
	}
}

// unindexChild notes that child is about to leave a list of children, the last taking its place.
func (s *znodeStore) unindexChild(dir uint32, child *znode, children []znodeID) {
	x := s.pages.of[dir]
	if x == nil || int(child.childIdx) >= x.built {
		return
	}
	x.built--
	last := s.at(children[x.built]) // of the part that has an index
	children[child.childIdx], last.childIdx, child.childIdx = last.id, child.childIdx, last.childIdx
	if x.stale++; x.stale >= len(children) {
		delete(s.pages.of, dir)
	}
}

func (x *pageIndex) find(name string) int {
	return sort.Search(len(x.chunks)-1, func(i int) bool { return x.chunks[i+1].first > name })
}

// add adds the next child to the index of p's children. It returns how much work that was, in
// additions without a split.
func (x *pageIndex) add(s *znodeStore, p *znode, child *znode) (work int) {
	x.built++
	at := x.find(child.name())
	c := &x.chunks[at]
	c.ids, c.sorted = append(c.ids, child.id), false
	if len(c.ids) <= s.pages.chunk {
		return 1
	}
	names := x.load(s, p, at)
	if len(names) <= s.pages.chunk/2 {
		return s.pages.chunk / 2
	}
	half := len(names) / 2
	if at == len(x.chunks)-1 {
		half = len(names) - 1 // names that grow, such as those of sequential znodes, fill the chunks
	}
	right := pageChunk{strings.Clone(names[half].name), slices.Clone(c.ids[half:]), true}
	c.ids = c.ids[:half]
	x.chunks = slices.Insert(x.chunks, at+1, right)
	return s.pages.chunk / 2
}

// load removes the stale numbers from a chunk, sorts it, and returns its names, which are valid
// until the next call.
func (x *pageIndex) load(s *znodeStore, p *znode, at int) []pageName {
	c := &x.chunks[at]
	names := s.pages.names[:0]
	for i, id := range c.ids {
		prefetch(c.ids, i, s.touchPath)
		n := s.znodes.Peek(id)
		if n == nil || n.parent != p.id {
			continue
		}
		name := n.name()
		if name < c.first || at+1 < len(x.chunks) && name >= x.chunks[at+1].first {
			continue
		}
		names = append(names, pageName{id: id, name: name})
	}
	if !c.sorted {
		names = sortNames(names)
	}
	x.stale -= len(c.ids) - len(names)
	c.ids, c.sorted = c.ids[:len(names)], true
	for i := range names {
		c.ids[i] = names[i].id
	}
	s.pages.names = names
	return names
}

// sortNames sorts names as sortNotes sorts notes, and removes those that are there twice.
func sortNames(names []pageName) []pageName {
	if len(names) == 0 {
		return names
	}
	first := names[0].name
	shared := len(first)
	for i := range names {
		shared = commonLen(first[:shared], names[i].name)
	}
	for i := range names {
		names[i].bytes = number(names[i].name[shared:])
	}
	slices.SortFunc(names, func(a, b pageName) int {
		if a.bytes != b.bytes {
			return cmp.Compare(a.bytes, b.bytes)
		}
		return strings.Compare(a.name, b.name)
	})
	return slices.CompactFunc(names, func(a, b pageName) bool { return a.id == b.id })
}

// indexOf returns the index of n's children, or nil after a part of it was built. A short list gets
// an index for this call. s.pages is locked.
func (s *znodeStore) indexOf(n *znode) *pageIndex {
	children := s.children(n)
	x := s.pages.of[n.dir]
	switch {
	case x != nil:
	case len(children) < s.pages.from:
		return &pageIndex{chunks: []pageChunk{{ids: slices.Clone(children)}}, built: len(children)}
	default:
		x = &pageIndex{chunks: make([]pageChunk, 1)}
		s.pages.of[n.dir] = x
	}
	x.idle = 0
	for work := 0; x.built < len(children) && work < s.pages.work; {
		prefetch(children, x.built, s.touchPath)
		work += x.add(s, n, s.at(children[x.built]))
	}
	if x.built < len(children) {
		return nil
	}
	return x
}

// Page returns a page of a znode's children, sorted by name. The data on it is shared and
// immutable. A page may be empty and lead to itself, while the index of a long list is being built.
// Errors: ErrBadArguments for unknown flags, ErrNoNode, ErrNoAuth without READ.
func (s *znodeStore) Page(r *proto.ListPageRequest, c Caller) (page proto.ListPageResponse, code proto.ErrCode) {
	const all = proto.PageStat | proto.PageData | proto.PageEphemeral | proto.PagePersistent | proto.PageFrom
	if r.Flags&^all != 0 {
		return page, proto.ErrBadArguments
	}
	n, code := s.readable(r.Path, &c, proto.PermRead)
	if code != proto.OK {
		return page, code
	}
	rec := s.record(n)
	page.Parent = s.stat(n, &rec)
	s.pages.mu.Lock()
	defer s.pages.mu.Unlock()
	last := r.StartAfter
	page.Next = &last
	x := s.indexOf(n)
	if x == nil {
		return page, proto.OK
	}
	limit := orMost(r.Limit, proto.MaxPageEntries)
	left := orMost(r.MaxBytes, proto.MaxPageBytes) - proto.ReplyHeaderBytes - 8 - proto.StatBytes
	page.Entries = make([]proto.PageEntry, 0, max(0, min(limit, x.built, left/proto.StatBytes)))
	loaded := 0
	for i := x.find(last); i < len(x.chunks); i++ {
		if loaded >= s.pages.work {
			return page, proto.OK
		}
		loaded += len(x.chunks[i].ids)
		names := x.load(s, n, i)
		for _, child := range names[sort.Search(len(names), func(i int) bool { return names[i].name >= last }):] {
			if child.name == last && r.Flags&proto.PageFrom == 0 {
				continue
			}
			e, shown := s.pageEntry(child, r.Flags&^proto.PageFrom, &c)
			bytes := 0
			if shown {
				bytes = 12 + len(e.Name) + len(e.Data) + proto.StatBytes
			}
			if len(page.Entries) == limit || left-bytes < len(child.name) && len(page.Entries) > 0 {
				return page, proto.OK
			}
			left -= bytes
			last = child.name
			if shown {
				page.Entries = append(page.Entries, e)
			}
		}
		if len(names) == 0 && i > 0 {
			x.chunks = slices.Delete(x.chunks, i, i+1)
			i--
		}
	}
	page.Next = nil
	return page, proto.OK
}

func orMost(asked int32, most int) int {
	if asked <= 0 {
		return most
	}
	return min(int(asked), most)
}

// pageEntry returns the entry of a child, and whether a page with these flags shows the child.
func (s *znodeStore) pageEntry(of pageName, flags proto.PageFlags, c *Caller) (e proto.PageEntry, shown bool) {
	e.Name = of.name
	if flags == 0 {
		return e, true
	}
	child := s.at(of.id)
	filter := flags & (proto.PageEphemeral | proto.PagePersistent)
	if !c.may(proto.PermRead, s.aclOf(child)) {
		e.Err = proto.ErrNoAuth
		return e, filter == 0
	}
	rec := s.record(child)
	isEphemeral := rec.kind == ephemeral
	if filter == proto.PagePersistent && isEphemeral || filter == proto.PageEphemeral && !isEphemeral {
		return e, false
	}
	if flags&proto.PageStat != 0 {
		e.Stat = s.stat(child, &rec)
	}
	if flags&proto.PageData != 0 {
		e.Data = rec.bytes()
	}
	return e, true
}
