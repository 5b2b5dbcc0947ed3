package queue

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/gozkd/gozkd/internal/sequence"
	"github.com/gozkd/gozkd/proto"
)

type layout struct {
	prefix string // of items' names; other children are ignored
	framed bool   // items are encoded as Curator's ItemSerializer does
	// sortKey orders the items, smallest first; nil if only the order of Put counts.
	sortKey func(name string) int64
	// due returns the Unix time in milliseconds before which an item must not be taken; nil for a
	// queue without delays.
	due func(name string) int64
}

var (
	simpleLayout   = &layout{prefix: "qn-"}
	plainLayout    = &layout{prefix: curatorPrefix, framed: true}
	priorityLayout = &layout{prefix: curatorPrefix, framed: true, sortKey: curatorPriority}
	delayLayout    = &layout{prefix: curatorPrefix, framed: true, sortKey: curatorEpoch, due: curatorEpoch}
	kazooLayout    = &layout{prefix: kazooPrefix, sortKey: kazooPriority}
)

const (
	curatorPrefix = "queue-"
	kazooPrefix   = "entry-"
)

// entry is an item of a listing, as described by the name of its znode.
type entry struct {
	name    string
	sortKey int64
	number  int32
	due     int64 // Unix ms; 0 means at once
	data    []byte
	stat    *proto.Stat // nil until the znode was read, like data
	// forbidden is the error of a read that the item's ACL forbids.
	forbidden error
}

// sorted returns the items among names, in the order in which they are to be taken.
func (l *layout) sorted(names []string) []*entry {
	all := make([]*entry, 0, len(names))
	for _, name := range names {
		number, _, ok := sequence.Parse(name)
		if !ok || !strings.HasPrefix(name, l.prefix) {
			continue
		}
		e := &entry{name: name, number: number}
		if l.sortKey != nil {
			e.sortKey = l.sortKey(name)
		}
		if l.due != nil {
			e.due = l.due(name)
		}
		all = append(all, e)
	}
	slices.SortFunc(all, func(a, b *entry) int {
		return cmp.Or(cmp.Compare(a.sortKey, b.sortKey), sequence.Compare(a.number, b.number))
	})
	return all
}

// curatorPriorityName encodes a priority as Curator does: a digit for its sign and eight
// hexadecimal digits of its two's complement, so that names sort by priority.
func curatorPriorityName(priority int32) string {
	sign := 1
	if priority < 0 {
		sign = 0
	}
	return fmt.Sprintf("%s%d%08X", curatorPrefix, sign, uint32(priority))
}

// curatorPriority returns the priority in a name, or 0 if there is none, as without priorities.
func curatorPriority(name string) int64 {
	begin := len(curatorPrefix) + 1
	if len(name) < begin+8+10 {
		return 0
	}
	n, _ := strconv.ParseUint(name[begin:begin+8], 16, 32) // 0 if it is not a number
	return int64(int32(n))
}

// curatorEpoch returns the time in a name in Unix ms, or 0. As in Curator, the time is between the
// last two bars.
func curatorEpoch(name string) int64 {
	parts := strings.Split(name, "|")
	if len(parts) < 3 {
		return 0
	}
	return number(parts[len(parts)-2], 16, 64)
}

// sanitizeID replaces bars and slashes in an ID as Curator does.
func sanitizeID(id string) string { return strings.NewReplacer("/", "_", "|", "_").Replace(id) }

// curatorID returns the ID in a name, which is between the first two bars; "" if there is none.
func curatorID(name string) string {
	_, rest, _ := strings.Cut(name, "|")
	id, _, ok := strings.Cut(rest, "|")
	if !ok {
		return ""
	}
	return id
}

func kazooName(priority int32) string { return fmt.Sprintf("%s%03d-", kazooPrefix, priority) }

func kazooPriority(name string) int64 {
	digits, _, _ := strings.Cut(strings.TrimPrefix(name, kazooPrefix), "-")
	return number(digits, 10, 32)
}

// number returns the number in digits, or 0 if there is none.
func number(digits string, base, bits int) int64 {
	n, err := strconv.ParseInt(digits, base, bits)
	if err != nil {
		return 0
	}
	return n
}
