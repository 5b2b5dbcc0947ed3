package inspect

import (
	"cmp"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/cli"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/replica"
	"github.com/gozkd/gozkd/proto"
)

// bound is the value of --since or --until.
type bound struct{ cli.Moment }

// compare returns a negative number if t is before the bound, and a positive one if t is after it.
// A transaction whose zxid is not known is older than all others of its log.
func (b *bound) compare(t *replica.Txn) int {
	if !b.Time.IsZero() {
		return t.Time.Compare(b.Time)
	}
	return cmp.Compare(t.Zxid, proto.Zxid(b.Zxid))
}

// interval is a range of transactions, with both ends.
type interval struct{ from, to bound }

func (i *interval) has(t *replica.Txn) bool {
	return (i.from == bound{} || i.from.compare(t) >= 0) && (i.to == bound{} || i.to.compare(t) <= 0)
}
