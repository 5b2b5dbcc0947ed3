package cache

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/gozkd/gozkd/proto"
)

// Znode is a cached znode. Its Stat is as of the last read of the data, so its numbers of children
// may be older than the children in the cache. Neither the Znode nor its Data may be modified.
type Znode struct {
	Path string // as the Client names it, relative to its namespace
	Data []byte
	Stat proto.Stat

	names []string // of the children, sorted; nil unless the cache keeps names
}

// EventType is the type of an Event.
type EventType int

// The types of events.
const (
	Added    EventType = iota + 1 // the znode New appeared
	Changed                       // the data of Old were set, and New has them
	Removed                       // the znode Old disappeared
	Complete                      // everything has been read since the connection was made
	Stale                         // the connection is lost: the content may be out of date until the next Complete
)

func (t EventType) String() string {
	names := [...]string{"added", "changed", "removed", "complete", "stale"}
	if t < Added || t > Stale {
		return fmt.Sprintf("event type %d", int(t))
	}
	return names[t-Added]
}

// Event is a change of a cache.
type Event struct {
	Type EventType
	Old  *Znode // for Changed and Removed
	New  *Znode // for Added and Changed
}

// Path returns the path of the znode, and "" for Complete and Stale.
func (e Event) Path() string {
	switch {
	case e.New != nil:
		return e.New.Path
	case e.Old != nil:
		return e.Old.Path
	}
	return ""
}

// same reports whether a and b are the same version of a znode, or both nil. The data are compared
// too, because servers that lost their data assign the same zxids again.
func same(a, b *Znode) bool {
	if a == nil || b == nil {
		return a == b
	}
	return int64(a.Stat.Czxid) == int64(b.Stat.Czxid) && int64(a.Stat.Mzxid) == int64(b.Stat.Mzxid) && slices.Equal(a.names, b.names) && bytes.Equal(a.Data, b.Data)
}

// split returns the parent's path, which is "" for "/", and the name.
func split(path string) (parent, name string) {
	i := strings.LastIndexByte(path, '/')
	switch {
	case path == "/":
		return "", ""
	case i < 0: // not a path
		return "", path
	case i == 0:
		return "/", path[1:]
	}
	return path[:i], path[i+1:]
}
