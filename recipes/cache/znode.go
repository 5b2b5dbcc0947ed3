package cache

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"
)

// Znode is what a cache has of a znode: its data, and its Stat as of when the data were read, so that the numbers of its children may be
// older than the children that the cache shows. Nobody may change it, or its Data.
type Znode struct {
	Path string // as the Client names it
	Data []byte
	Stat zk.Stat

	names []string // of the children, sorted, where that is what is kept; else nil
}

// Name is the last part of the Path.
func (z *Znode) Name() string {
	_, name := split(z.Path)
	return name
}

// EventType says what an Event tells.
type EventType int

// The types of events.
const (
	Added    EventType = iota + 1 // the znode New is there
	Changed                       // New was Old before: the data were set
	Removed                       // Old is gone
	Complete                      // the cache was read whole since the connection was made: what came before is what there is
	Stale                         // the connection is lost: until the next Complete what the cache shows may be out of date
)

func (t EventType) String() string {
	names := [...]string{"added", "changed", "removed", "complete", "stale"}
	if t < Added || t > Stale {
		return fmt.Sprintf("event type %d", int(t))
	}
	return names[t-Added]
}

// Event is a step of what a cache shows.
type Event struct {
	Type EventType
	Old  *Znode // of Changed and Removed
	New  *Znode // of Added and Changed
}

// Path is that of the znode, or "" of Complete and Stale.
func (e Event) Path() string {
	switch {
	case e.New != nil:
		return e.New.Path
	case e.Old != nil:
		return e.Old.Path
	}
	return ""
}

// same reports whether both are there in the same version, or neither is. It looks at the data too: servers that have lost theirs give the same
// zxids again.
func same(a, b *Znode) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Stat.Czxid == b.Stat.Czxid && a.Stat.Mzxid == b.Stat.Mzxid && slices.Equal(a.names, b.names) && bytes.Equal(a.Data, b.Data)
}

// split returns the path of the znode above, which is "" above "/", and the name.
func split(path string) (parent, name string) {
	i := strings.LastIndexByte(path, '/')
	switch {
	case path == "/":
		return "", ""
	case i < 0: // no path
		return "", path
	case i == 0:
		return "/", path[1:]
	}
	return path[:i], path[i+1:]
}

func join(parent, name string) string {
	if parent == "/" {
		return "/" + name
	}
	return parent + "/" + name
}
