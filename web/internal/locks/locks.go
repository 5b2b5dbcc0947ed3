package locks

import (
	"fmt"
	"slices"
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/gozkd/gozkd/internal/sequence"
)

// Session is the id of a session. Its text is hexadecimal, as a log has it.
type Session int64

// MarshalText implements encoding.TextMarshaler.
func (s Session) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "%#x", uint64(s)), nil }

// Znode is a child of a directory.
type Znode struct {
	Name    string
	Session Session // that owns it; 0: it is not ephemeral
	Czxid   int64
	Ctime   int64  // Unix ms
	Data    []byte // nil if the caller may not read them
}

// Directory is a znode whose children may be contenders.
type Directory struct {
	Path     string
	Data     []byte
	Children []Znode
}

// Kind is the kind of a lock.
type Kind string

// The kinds of locks. A mutex may be an election by a leader selector, which has the same znodes.
const (
	Mutex     Kind = "mutex"
	ReadWrite Kind = "read/write"
	Election  Kind = "election"
	Semaphore Kind = "semaphore"
)

// Lock is a lock with its contenders.
type Lock struct {
	Path   string      `json:"path"`
	Kind   Kind        `json:"kind"`
	Layout string      `json:"layout"`
	Limit  int         `json:"limit,omitempty"` // how many leases a semaphore has; 0: not known
	Queue  []Contender `json:"queue"`           // in the order of arrival, leases first
}

// Contender is a znode in the queue of a lock.
type Contender struct {
	Path    string  `json:"path"`
	Session Session `json:"session,omitempty"` // 0: the znode is not ephemeral
	Address string  `json:"address,omitempty"` // of the session's client; Find does not know it
	Role    string  `json:"role,omitempty"`    // read, write, lease, or "" if there is only one
	Holds   bool    `json:"holds,omitempty"`
	Since   int64   `json:"since"`          // when the znode was created, Unix ms
	ID      string  `json:"text,omitempty"` // the data, if they are a short text
	// Before are places in the queue. This contender waits until the contenders there are gone: all
	// of them or, if Any is set, any of them.
	Before []int `json:"waitsFor,omitempty"`
	Any    bool  `json:"any,omitempty"`
	// Repeated: the session has an earlier contender in this queue, for another of its threads or
	// because the reply to a create was lost and nobody deleted that znode.
	Repeated bool `json:"-"`
	// Suspect says why the znode may be left over, or is "".
	Suspect string `json:"suspect,omitempty"`

	czxid int64
}

// The reasons of Contender.Suspect.
const (
	notEphemeral = "not ephemeral: the end of a session does not remove this znode"
	sameCreate   = "created twice: an earlier znode has the same GUID, so a reply to a create was lost"
	sameSession  = "the session has a later place in this queue too: another thread, or a znode that was left after a lost reply"
)

const maxID = 128

// Find recognizes the locks in directories and returns them by path. A directory with a queue and
// a directory with leases that belong together are one semaphore.
func Find(dirs []Directory) []Lock {
	all := []Lock{}
	for i := range dirs {
		if l, ok := recognize(&dirs[i]); ok {
			all = append(all, l)
		}
	}
	all = combine(all)
	sort.Slice(all, func(i, j int) bool { return all[i].Path < all[j].Path })
	return all
}

// place is a contender with its name taken apart.
type place struct {
	*Znode
	name
}

// recognize returns the lock whose contenders are the children of a directory.
func recognize(d *Directory) (Lock, bool) {
	if leases, ok := kazooLeases(d); ok {
		return leases, true
	}
	var places []place
	for i := range d.Children {
		if n, ok := parse(d.Children[i].Name); ok {
			places = append(places, place{&d.Children[i], n})
		}
	}
	if len(places) == 0 || d.Path == "/" || !slices.ContainsFunc(places, func(p place) bool { return p.Session != 0 }) {
		return Lock{}, false
	}
	sort.SliceStable(places, func(i, j int) bool { return sequence.Compare(places[i].number, places[j].number) < 0 })
	l := Lock{Path: d.Path, Kind: kindOf(places), Layout: places[0].layout}
	if l.Kind == ReadWrite && places[0].role == exclusive {
		l.Layout = "kazoo read/write lock" // whose writers have the name of its lock
	}
	for i, p := range places {
		c := contender(d.Path, p.Znode)
		switch {
		case l.Kind == Semaphore:
			c.Role = "lease"
		case l.Kind == ReadWrite && p.role == reader:
			c.Role, c.Before = "read", lastWriter(places[:i])
		case l.Kind == ReadWrite:
			c.Role, c.Before = "write", beforeWriter(places[:i])
		case i > 0:
			c.Before = []int{i - 1}
		}
		c.Holds = len(c.Before) == 0
		l.Queue = append(l.Queue, c)
	}
	mark(places, l.Queue)
	return l, true
}

// kindOf returns the kind of the contenders' lock. A reader makes the lock a
// read/write lock, because kazoo's writers have the name of its plain lock.
func kindOf(places []place) Kind {
	for _, p := range places {
		if p.role == reader || p.role == writer {
			return ReadWrite
		}
	}
	switch places[0].role {
	case lease:
		return Semaphore
	case leader:
		return Election
	}
	return Mutex
}

// lastWriter returns the place of the last contender that is no reader, for which a reader waits.
func lastWriter(before []place) []int {
	for i := len(before) - 1; i >= 0; i-- {
		if before[i].role != reader {
			return []int{i}
		}
	}
	return nil
}

// beforeWriter returns whom a writer waits for: the readers since the last writer, or that writer.
func beforeWriter(before []place) (places []int) {
	i := len(before) - 1
	for ; i >= 0 && before[i].role == reader; i-- {
		places = append(places, i)
	}
	if len(places) == 0 && i >= 0 {
		places = []int{i}
	}
	slices.Reverse(places)
	return places
}

func contender(dir string, z *Znode) Contender {
	c := Contender{Path: dir + "/" + z.Name, Session: z.Session, Since: z.Ctime, ID: shortText(z.Data), czxid: z.Czxid}
	if z.Session == 0 {
		c.Suspect = notEphemeral
	}
	return c
}

func shortText(data []byte) string {
	if len(data) > maxID {
		data = data[:maxID]
		for len(data) > 0 && !utf8.Valid(data) && len(data) > maxID-utf8.UTFMax {
			data = data[:len(data)-1]
		}
	}
	if !utf8.Valid(data) {
		return ""
	}
	text := strings.TrimSpace(string(data))
	if strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) && !unicode.IsSpace(r) }) {
		return ""
	}
	return text
}

// mark finds the contenders of sessions and creates that have several places.
func mark(places []place, queue []Contender) {
	last := make(map[Session]int) // by session
	ids := make(map[string]bool)
	for i := range queue {
		c, id := &queue[i], places[i].id
		if before, ok := last[c.Session]; ok && c.Session != 0 {
			c.Repeated = true
			if queue[before].Suspect == "" && c.Role != "lease" {
				queue[before].Suspect = sameSession
			}
		}
		last[c.Session] = i
		if id != "" && ids[id] {
			c.Suspect = sameCreate
		}
		ids[id] = true
	}
}
