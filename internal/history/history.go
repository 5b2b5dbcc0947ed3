// Package history has the types in which earlier states of znodes are asked for and answered. The
// program reads them from an archive; package web serves them.
package history

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/gozkd/gozkd/proto"
)

// Archive has earlier states of znodes. Its methods may be called from any goroutine. They take
// seconds and much memory, so an implementation bounds how many run at once. The state of a znode
// is returned to callers that its ACL of that time lets read.
type Archive interface {
	// Changes returns changes of a znode, the newest first.
	Changes(ctx context.Context, q Query) (*Page, error)
	// At returns a znode at a moment, or an error with proto.ErrNoNode or proto.ErrNoAuth.
	At(ctx context.Context, q Query, m Moment) (*State, error)
}

// Errors of an Archive, besides those of its storage.
var (
	// ErrNotCovered: the archive does not have the moment.
	ErrNotCovered = errors.New("the archive does not have this moment")
	// ErrBusy: too many callers read the archive.
	ErrBusy = errors.New("the archive is being read for somebody else")
	// ErrTooLarge: the states to begin with are too large for a server that serves clients.
	ErrTooLarge = errors.New("too large to be read by a server")
)

// Query selects changes.
type Query struct {
	Path string
	IDs  []proto.ID // of the caller
	// Before is below which zxid changes are returned; 0: all. Only for Changes, as Limit, which
	// bounds them except Earlier and Gap, and MaxData, which bounds the data of each in bytes.
	Before  proto.Zxid
	Limit   int
	MaxData int
	// Since asks Changes for the changes from a time on of all znodes below Path as well, without
	// the znodes themselves; zero: only of Path. Answers have all changes of a transaction, so they
	// may have more than Limit.
	Since time.Time
}

// Moment is a zxid or a time.
type Moment struct {
	Zxid proto.Zxid
	Time time.Time
}

// ParseMoment reads a zxid such as 0x100000007, or a time in one of the layouts, after 1970.
func ParseMoment(text string, layouts ...string) (m Moment, ok bool) {
	if hex, isZxid := strings.CutPrefix(text, "0x"); isZxid {
		zxid, err := strconv.ParseUint(hex, 16, 63)
		return Moment{Zxid: proto.Zxid(zxid)}, err == nil && zxid > 0
	}
	for _, layout := range layouts {
		if t, err := time.Parse(layout, text); err == nil && t.Unix() > 0 {
			return Moment{Time: t}, true
		}
	}
	return m, false
}

// Kinds of changes.
const (
	Created = "created"
	Changed = "changed" // the data
	ACL     = "acl"
	Deleted = "deleted"
	Earlier = "earlier" // no change: the begin of the archive, with the state if that is asked for
	Gap     = "gap"     // no change: the archive lacks what happened next
)

// Change is a change of a znode.
type Change struct {
	Path    string // if the query has Since
	Kind    string
	Zxid    proto.Zxid
	Time    time.Time
	Op      string // the request, as the protocol names it
	Session proto.SessionID
	IDs     []proto.ID // of the client that made the change
	Znode   *Znode     // after the change; nil if it was deleted
}

// Page is a part of the history of a znode.
type Page struct {
	Changes []Change
	Hidden  int // changes left out, because the caller might not read the znode then
	// Next is the Before of the next page; 0: there are no earlier changes in the archive.
	Next proto.Zxid
	// Until is the time of the last write that was archived.
	Until time.Time
}

// Znode is a znode at a moment.
type Znode struct {
	Stat proto.Stat
	Data []byte // at most Query.MaxData bytes; nil is null
	ACL  []proto.ACL
}

// State is a Znode with the names of its children, unsorted, and when it was last written before.
type State struct {
	Znode
	Children []string
	Zxid     proto.Zxid
	Time     time.Time
}
