package faultproxy

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
)

// Rules are the armed faults, in the order of Add. The first that matches a request applies to it.
// The zero value has no rules. Several gates may share Rules. Safe for concurrent use.
type Rules struct {
	mu   sync.Mutex // guards list, and the counts of all rules
	list []*Armed
}

// Add arms a fault. The error lists everything that is wrong with it.
func (r *Rules) Add(f Fault) (*Armed, error) {
	m, err := f.check()
	if err != nil {
		return nil, err
	}
	a := &Armed{rules: r, fault: f, meaning: m, times: f.Times, done: make(chan struct{}), gone: make(chan struct{})}
	a.times = cmp.Or(a.times, 1)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = append(r.list, a)
	return a, nil
}

// Clear removes all rules.
func (r *Rules) Clear() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range slices.Clone(r.list) {
		a.removeLocked()
	}
}

// Armed is a fault in Rules. Safe for concurrent use.
type Armed struct {
	rules   *Rules
	fault   Fault
	meaning meaning
	times   int           // < 0: until removed
	done    chan struct{} // closed when the fault has happened as often as it should
	gone    chan struct{} // closed by removal

	// The fields below are guarded by rules.mu.
	taken   int // requests taken; the replies of taken-count are still to come
	count   int
	removed bool
}

// Remove removes the rule. Its delays end, and a reply that the rule was to drop is delivered. A
// request that the rule has failed stays failed.
func (a *Armed) Remove() {
	a.rules.mu.Lock()
	defer a.rules.mu.Unlock()
	a.removeLocked()
}

func (a *Armed) removeLocked() {
	if !a.removed {
		a.removed = true
		close(a.gone)
		a.unlist()
	}
}

func (a *Armed) unlist() {
	a.rules.list = slices.DeleteFunc(a.rules.list, func(b *Armed) bool { return a == b })
}

// Count returns how often the fault has happened.
func (a *Armed) Count() int {
	a.rules.mu.Lock()
	defer a.rules.mu.Unlock()
	return a.count
}

// Done returns a channel that is closed when the fault has happened as often as it should, or once
// for a rule that stays until it is removed. Remove does not close it.
func (a *Armed) Done() <-chan struct{} { return a.done }

// Gone returns a channel that is closed by Remove.
func (a *Armed) Gone() <-chan struct{} { return a.gone }

// String describes the fault and how often it has happened.
func (a *Armed) String() string { return fmt.Sprintf("%v; happened %d times", a.fault, a.Count()) }

// giveBack returns a claim for a request that will not be answered.
func (a *Armed) giveBack() {
	a.rules.mu.Lock()
	defer a.rules.mu.Unlock()
	a.taken--
}

// happened counts a fault that has happened. It returns false if the rule was removed.
func (a *Armed) happened() bool {
	a.rules.mu.Lock()
	defer a.rules.mu.Unlock()
	if a.removed {
		return false
	}
	a.count++
	if a.count == max(a.times, 1) {
		close(a.done)
	}
	if a.count == a.times {
		a.unlist()
	}
	return true
}

const (
	// maxFrameBytes: a greater length is not the length of a request. ZooKeeper's default limit
	// (jute.maxbuffer) is 1 MiB.
	maxFrameBytes = 64 << 20
	// maxMultiBytes: a longer multi is not decoded, and no path prefix matches it.
	maxMultiBytes = 4 << 20
	// sequenceDigits is the length of the number in the name of a sequential znode.
	sequenceDigits = 10
	// requestBytes is the part of every request that is parsed: its length and header.
	requestBytes = 4 + proto.RequestHeaderBytes
)

// request is the beginning of a request's frame.
type request struct {
	// From the length on; at least requestBytes, except of a connect request, at most the frame.
	seen    []byte
	bytes   int // of the whole frame with its length
	connect bool
	session int64
	header  proto.RequestHeader // zero for a connect request
	more    bool                // more must be seen: what the methods return is void
}

// has reports whether n bytes of the frame are seen; otherwise it sets more.
func (r *request) has(n int) bool {
	r.more = r.more || len(r.seen) < n
	return len(r.seen) >= n
}

func (a *Armed) selects(r *request) bool {
	f := &a.fault
	switch {
	case f.Session != 0 && f.Session != r.session:
		return false
	case r.connect != (f.Op == OpConnect), !r.connect && !a.meaning.covers(r.header.Op):
		return false
	case r.header.Xid == proto.XidEvent && f.Kind != Delay:
		return false // its reply could not be told from an event
	}
	return f.PathPrefix == "" || r.below(f.PathPrefix)
}

func (r *request) below(prefix string) bool {
	switch r.header.Op.Info().Path {
	case proto.PathEach:
		return slices.ContainsFunc(r.multi(), func(op proto.MultiOp) bool { return pathHasPrefix(op.Path, prefix) })
	case proto.PathNone:
		return false
	}
	const at = requestBytes + 4
	if r.bytes < at || !r.has(at) {
		return false
	}
	length := int(int32(binary.BigEndian.Uint32(r.seen[requestBytes:])))
	if length < len(prefix) || length > r.bytes-at { // null, too short, or longer than the frame
		return false
	}
	// To decide, the prefix, a sequence number and a slash are enough.
	enough := at + min(length, len(prefix)+sequenceDigits+1)
	path := string(r.seen[at:min(len(r.seen), enough)])
	seen := min(len(path), len(prefix))
	return path[:seen] == prefix[:seen] && r.has(enough) && pathHasPrefix(path, prefix)
}

// multi returns the operations of a multi, nil if it is malformed, too long, or not all seen.
func (r *request) multi() []proto.MultiOp {
	if r.bytes > maxMultiBytes || !r.has(r.bytes) {
		return nil
	}
	d := jute.NewDecoder(r.seen[requestBytes:r.bytes])
	var m proto.MultiRequest
	if m.Decode(&d, r.header.Op) != nil {
		return nil
	}
	return m.Ops
}

// pathHasPrefix reports whether path is the prefix or a sequential znode of that name, or is below
// either of them. The first len(prefix) + sequenceDigits + 1 bytes of the path are enough.
func pathHasPrefix(path, prefix string) bool {
	rest, ok := strings.CutPrefix(path, prefix)
	switch {
	case !ok:
		return false
	case rest == "", rest[0] == '/', prefix[len(prefix)-1] == '/':
		return true
	case len(rest) < sequenceDigits, len(rest) > sequenceDigits && rest[sequenceDigits] != '/':
		return false
	}
	for i := range sequenceDigits { // ZooKeeper prints an overflowed counter with a minus sign
		if c := rest[i]; (c < '0' || c > '9') && (i > 0 || c != '-') {
			return false
		}
	}
	return true
}
