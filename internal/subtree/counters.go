package subtree

import (
	"cmp"
	"context"
	"errors"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/internal/parallel"
	"github.com/gozkd/gozkd/proto"
)

// Counter is a sequence counter that is behind the wanted one: the number of children that were
// ever created below a znode.
type Counter struct {
	Path string `json:"path"`
	By   int64  `json:"by"` // missing creations
	Err  error  `json:"-"`  // why the server refused to move the counter; nil: there are too many missing creations
}

// counterChild is the znode that moves a counter on: it is created and deleted in one transaction.
const counterChild = "gozkd-sequence-counter"

// maxCreations is where the creations that a Stat shows begin again at 0.
const maxCreations = 1 << 31

// creations returns how many children were ever created below a znode: ZooKeeper numbers sequential
// znodes with it. A Stat shows it as Cversion, twice the creations minus the children. The root of
// a new ZooKeeper has a child that was not counted, so Cversion can be negative.
func creations(s proto.Stat) int64 {
	return int64((uint32(s.Cversion) + uint32(s.NumChildren)) / 2)
}

func forward(path string, by int64) (ops []client.Op) {
	child := Join(path, counterChild)
	for range by {
		ops = append(ops, client.CreateOp(child, nil, client.CreateOptions{}), client.DeleteOp(child, 0))
	}
	return ops
}

// Counters moves sequence counters forward to the wanted values, with at most Limit creations in
// total. The zero value moves none.
type Counters struct {
	Limit int64
	// Behind has the first counters that stay behind, NBehind is the number of all.
	Behind  []Counter
	NBehind int64
}

// allow reports whether a counter may move forward, and takes the creations from the limit.
func (c *Counters) allow(o Counter) bool {
	if o.By > c.Limit {
		c.stay(o)
		return false
	}
	c.Limit -= o.By
	return true
}

func (c *Counters) stay(o Counter) {
	if c.NBehind++; len(c.Behind) < maxNamed {
		c.Behind = append(c.Behind, o)
	}
}

// move moves counters forward. By is the wanted number of creations in total. The live counters are
// read first, and again after a lost connection, so that no creation is repeated.
func (c *Counters) move(ctx context.Context, zk *client.Client, wanted []Counter) error {
	behind := make([]Counter, len(wanted))
	err := Each(len(wanted), func(i int) (err error) {
		behind[i] = Counter{Path: wanted[i].Path}
		behind[i].By, err = missing(ctx, zk, wanted[i])
		return err
	})
	if err != nil {
		return err
	}
	for i := range behind {
		if behind[i].By > 0 && !c.allow(behind[i]) {
			behind[i].By = 0
		}
	}
	err = Each(len(behind), func(i int) error {
		if behind[i].By == 0 {
			return nil
		}
		err := moveOne(ctx, zk, wanted[i])
		if e, ok := errors.AsType[*client.Error](err); ok && (e.Code == proto.ErrNoAuth || e.Code == proto.ErrNodeExists || e.Code == proto.ErrQuotaExceeded) {
			behind[i].Err, err = err, nil
		}
		return err
	})
	for _, o := range behind {
		if o.Err != nil {
			c.stay(o)
		}
	}
	return err
}

// Each calls f with the numbers below n, several at once, and returns the first error by number.
func Each(n int, f func(int) error) error {
	return cmp.Or(parallel.Each(n, window, f)...)
}

// missing returns how many creations a counter lacks. A znode that was deleted lacks none.
func missing(ctx context.Context, zk *client.Client, wanted Counter) (int64, error) {
	var stat proto.Stat
	var there bool
	err := retry(func() (err error) { stat, there, err = zk.Exists(ctx, wanted.Path, false); return err })
	if err != nil || !there {
		return 0, err
	}
	return max(0, wanted.By-creations(stat)), nil
}

func moveOne(ctx context.Context, zk *client.Client, wanted Counter) error {
	for lost := 0; ; {
		by, err := missing(ctx, zk, wanted)
		if err != nil || by == 0 {
			return err
		}
		_, err = zk.Multi(ctx, forward(wanted.Path, min(by, batchOps/2))...)
		switch {
		case err == nil || errors.Is(err, proto.ErrNoNode): // deleted meanwhile: missing says so
		case errors.Is(err, proto.ErrConnectionLoss) && lost < attempts:
			lost++
			if err := retry(func() error { _, err := zk.Sync(ctx, wanted.Path); return err }); err != nil {
				return err
			}
		default:
			return err
		}
	}
}
