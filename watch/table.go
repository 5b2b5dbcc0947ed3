package watch

import (
	"sync"
	"sync/atomic"

	"github.com/gozkd/gozkd/proto"
)

// ConnID names a connection. The server chooses it and never uses it again.
type ConnID uint64

// Kind is a set of watch modes.
type Kind uint8

// The watch modes. Data and Child are one-shot, the others stay.
const (
	Data                Kind = 1 << iota // getData, and exists also on a missing znode
	Child                                // getChildren
	Persistent                           // addWatch mode 0: all that Data and Child would see
	PersistentRecursive                  // addWatch mode 1: the path and all below it, but no ChildrenChanged
)

// Table holds watches. Safe for concurrent use; no method blocks longer than its own work takes.
type Table struct {
	entries atomic.Int64 // for Empty; written under mu

	mu        sync.Mutex // guards all below
	paths     map[string]uint32
	conns     map[ConnID]uint32
	recursive int // entries with PersistentRecursive, to spare Match the walk up

	// Nodes refer to each other by their number in these arenas, not by pointer: that halves an entry, and the garbage
	// collector has nothing to follow. 0 is no node.
	entry arena[entry]
	path  arena[pathNode]
	conn  arena[connNode]

	crowds map[crowd]map[uint32]uint32 // of a list longer than maxScan: connection to entry
	round  uint64                      // counts calls of Match, see connNode.round

	dataEntries, dataPaths, dataConns int // what Stats returns
}

// New returns an empty table.
func New() *Table {
	return &Table{
		paths:  make(map[string]uint32),
		conns:  make(map[ConnID]uint32),
		crowds: make(map[crowd]map[uint32]uint32),
	}
}

// Empty reports that nobody watches anything. It takes no lock, so that applying a transaction costs nothing here while
// there are no watches.
func (t *Table) Empty() bool { return t.entries.Load() == 0 }

// Add registers c for k on path. What is registered already stays and is not doubled (T3). The path may alias a buffer:
// it is cloned if it is kept. Nothing is validated; a path that no znode can have never matches. After RemoveConn(c) the
// caller must not add for c again: nothing would take it away.
func (t *Table) Add(c ConnID, path string, k Kind) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if in := k & inData; in != 0 {
		t.put(c, path, data, in)
	}
	if in := k & inChild; in != 0 {
		t.put(c, path, child, in)
	}
}

// Has reports whether c has a watch of type k on exactly this path. False for a type that is not valid.
func (t *Table) Has(c ConnID, path string, k proto.WatcherType) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	modes := kindOf(k)
	return t.get(c, path, data)&modes != 0 || t.get(c, path, child)&modes != 0
}

// Remove takes away c's watches of type k on exactly this path. False if there were none, or k is not valid.
func (t *Table) Remove(c ConnID, path string, k proto.WatcherType) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	found := false
	for s := range sides {
		if e := t.find(c, path, s); e != 0 {
			if modes := t.entry.at(e).modes & kindOf(k); modes != 0 {
				t.clear(e, modes)
				found = true
			}
		}
	}
	return found
}

// RemoveConn takes away all watches of c.
func (t *Table) RemoveConn(c ConnID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for {
		n, ok := t.conns[c] // gone with its last entry
		if !ok {
			return
		}
		e := t.conn.at(n).head
		t.clear(e, t.entry.at(e).modes)
	}
}

// kindOf returns the modes that a watcher type stands for, none if it is not valid.
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
