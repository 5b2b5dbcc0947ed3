package inspect

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/gozkd/gozkd/proto"
)

// bound is the value of --from or --to: a zxid or a time.
type bound struct {
	set  bool
	zxid proto.Zxid
	time time.Time
}

// layouts are the forms of a time, in UTC unless they say otherwise.
var layouts = []string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02 15:04", time.DateOnly}

// Set implements flag.Value.
func (b *bound) Set(text string) error {
	if hex, is := strings.CutPrefix(text, "0x"); is {
		zxid, err := strconv.ParseUint(hex, 16, 64)
		*b = bound{set: true, zxid: proto.Zxid(zxid)}
		return err
	}
	for _, layout := range layouts {
		if t, err := time.Parse(layout, text); err == nil {
			*b = bound{set: true, time: t}
			return nil
		}
	}
	return fmt.Errorf("want a zxid (0x100000002) or a time (2026-11-23T08:00:00Z, 2026-11-23 08:00 in UTC, 2026-11-23)")
}

// String implements flag.Value.
func (b *bound) String() string { return "" }

// compare returns a negative number if t is before the bound, and a positive one if t is after it.
// A transaction whose zxid is not known is older than all others of its log.
func (b *bound) compare(t *Txn) int {
	switch {
	case !b.time.IsZero():
		return t.Time.Compare(b.time)
	case t.Zxid < b.zxid:
		return -1
	case t.Zxid > b.zxid:
		return 1
	}
	return 0
}

// interval is a range of transactions, with both ends.
type interval struct{ from, to bound }

func (i *interval) has(t *Txn) bool {
	return !(i.from.set && i.from.compare(t) < 0) && !(i.to.set && i.to.compare(t) > 0)
}
