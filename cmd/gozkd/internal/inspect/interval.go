package inspect

import (
	"cmp"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/cli"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/replica"
)

// interval is a range of transactions, with both ends: the values of --since and --until.
type interval struct{ from, to cli.Moment }

func (i *interval) has(t *replica.Txn) bool {
	return (i.from == cli.Moment{} || compare(t, i.from) >= 0) && (i.to == cli.Moment{} || compare(t, i.to) <= 0)
}

// compare returns a negative number if t is before a moment, and a positive one if t is after it. A
// transaction whose zxid is not known is older than all others of its log.
func compare(t *replica.Txn, m cli.Moment) int {
	if !m.Time.IsZero() {
		return t.Time.Compare(m.Time)
	}
	return cmp.Compare(t.Zxid, m.Zxid)
}
