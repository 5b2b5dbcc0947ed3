package watch

import (
	"sync"
	"sync/atomic"

	"github.com/gozkd/gozkd/internal/slab"
	"github.com/gozkd/gozkd/proto"
)

// ConnID identifies a connection. The server must not use the same ConnID twice.
type ConnID uint64

// Kind is a set of watch modes.
type Kind uint8

// The watch modes. Data and Child are one-shot, the others are permanent.
const (
	Data                Kind = 1 << iota // getData, and exists also on a missing znode
	Child                                // getChildren
	Persistent                           // addWatch mode 0: all events of Data and Child
	PersistentRecursive                  // addWatch mode 1: the path and all znodes below it, without ChildrenChanged
)

// Table holds watches. A Table is safe for concurrent use.
type Table struct {
	entries atomic.Int64 // for Empty; written under mu
	bytes   atomic.Int64 // of all entries and paths; written under mu

	mu        sync.Mutex // guards the fields below
	paths     map[string]uint32
	conns     map[ConnID]uint32
	recursive int // entries with PersistentRecursive; if 0, Match need not visit the ancestors

	// Records refer to each other by their numbers in these slabs instead of pointers. This halves
	// the size of an entry, and the garbage collector has nothing to follow. 0 means none.
	entry slab.Slab[entry]
	path  slab.Slab[pathRecord]
	conn  slab.Slab[connRecord]

	indexes map[listID]map[uint32]uint32 // entries by connection, of each list longer than maxScan
	round   uint64                       // counts calls of Match; see connRecord.round

	dataEntries, dataPaths, dataConns int // the results of Stats
}

// New returns an empty table.
func New() *Table {
	return &Table{
		paths:   make(map[string]uint32),
		conns:   make(map[ConnID]uint32),
		indexes: make(map[listID]map[uint32]uint32),
	}
}

// Empty reports whether there are no watches. Empty takes no lock, so that a transaction costs
// nothing here while there are none.
func (t *Table) Empty() bool { return t.entries.Load() == 0 }

// Add adds the modes k for connection c on path, and keeps earlier modes (T3). The path may alias a
// buffer: Add clones a path that it retains. The path is not validated; a path that no znode can
// have never matches. After RemoveConn(c) the caller must not call Add for c: nothing would remove
// the watch.
func (t *Table) Add(c ConnID, path string, k Kind) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if in := k & inData; in != 0 {
		t.put(c, path, dataList, in)
	}
	if in := k & inChild; in != 0 {
		t.put(c, path, childList, in)
	}
}

// Has reports whether c has a watch of type k on exactly this path. An invalid type has none.
func (t *Table) Has(c ConnID, path string, k proto.WatcherType) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	modes := kindOf(k)
	return t.get(c, path, dataList)&modes != 0 || t.get(c, path, childList)&modes != 0
}

// Remove removes c's watches of type k on exactly this path, and reports whether there were any.
func (t *Table) Remove(c ConnID, path string, k proto.WatcherType) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	found := false
	for list := range listKinds {
		if e := t.find(c, path, list); e != 0 {
			if modes := t.entry.At(e).modes & kindOf(k); modes != 0 {
				t.clear(e, modes)
				found = true
			}
		}
	}
	return found
}

// RemoveConn removes all watches of c.
func (t *Table) RemoveConn(c ConnID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for {
		n, ok := t.conns[c] // removed with its last entry
		if !ok {
			return
		}
		e := t.conn.At(n).all.head
		t.clear(e, t.entry.At(e).modes)
	}
}

// kindOf returns the modes of a watcher type, none if the type is invalid.
func kindOf(k proto.WatcherType) Kind {
	switch k {
	case proto.WatcherChildren:
		return Child
	case proto.WatcherData:
		return Data
	case proto.WatcherAny:
		return Data | Child | Persistent | PersistentRecursive
	case proto.WatcherPersistent:
		return Persistent
	case proto.WatcherPersistentRecursive:
		return PersistentRecursive
	}
	return 0
}
