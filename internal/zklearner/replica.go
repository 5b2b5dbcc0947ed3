package zklearner

import (
	"bufio"
	"errors"
	"fmt"

	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/internal/zkfiles"
	"github.com/gozkd/gozkd/proto"
)

// ErrDiffers is wrapped by the errors for a replica that is not the state of the source: a digest
// that differs, a missing transaction, or one that cannot be applied.
var ErrDiffers = errors.New("the replica differs from the source")

// Replica is the state of the source. Not safe for concurrent use.
type Replica struct {
	replay *datatree.Replay
	last   proto.Zxid // the last transaction
	epoch  uint32     // of the last leader that confirmed its state
	// fuzzy: no leader has sent its whole state yet. The tree is empty, or it was sent while
	// transactions changed it, and not all of these have been applied again.
	fuzzy   bool
	settled bool // see G3
	digests zkfiles.Digests

	trees             int        // how often the whole state was received
	records, compared int64      // transactions, and digests that were equal, since the whole state was received
	equalUpTo         proto.Zxid // the last transaction with a digest
}

func newReplica() *Replica {
	r := &Replica{}
	r.reset()
	return r
}

// reset discards the state. The epoch stays: a leader of an earlier one must not be followed.
func (r *Replica) reset() {
	*r = Replica{replay: datatree.NewReplay(datatree.New(datatree.Options{})), fuzzy: true, trees: r.trees, epoch: r.epoch}
}

// Tree returns the tree.
func (r *Replica) Tree() *datatree.Tree { return r.replay.Tree() }

// Last returns the zxid of the last transaction.
func (r *Replica) Last() proto.Zxid { return r.last }

// Whole reports whether the replica has been the whole state of a leader. Otherwise it must not be
// used, whatever logs are applied to it: they may have been purged of what came before.
func (r *Replica) Whole() bool { return !r.fuzzy }

// Settled reports whether the source has committed everything that the replica has.
func (r *Replica) Settled() bool { return r.settled && !r.fuzzy }

// Digest returns ZooKeeper's digest of the tree.
func (r *Replica) Digest() uint64 { return r.replay.Digest() }

// Compared returns how many digests were compared and equal, and the last transaction with one.
func (r *Replica) Compared() (n int64, upTo proto.Zxid) { return r.compared, r.equalUpTo }

// load begins with the tree that follows a Snap packet.
func (r *Replica) load(in *bufio.Reader, zxid proto.Zxid) error {
	r.reset()
	r.trees++
	tree, err := zkfiles.NewTreeReader(in)
	if err != nil {
		return err
	}
	if err := r.replay.Load(tree, func() error { return nil }); err != nil {
		return err
	}
	r.last = zxid
	r.replay.SetZxid(zxid)
	return readSnapEnd(in)
}

// Apply applies the transaction after the last one, and compares the digest. Earlier transactions
// are ignored. Errors wrap ErrDiffers.
func (r *Replica) Apply(x *zkfiles.Record) error {
	if x.Zxid <= r.last {
		return nil
	}
	follows := zkfiles.Follows(r.last, x.Zxid)
	if err := r.replay.Apply(x); err != nil {
		return fmt.Errorf("%w: %w", ErrDiffers, err)
	}
	last := r.last
	r.last = x.Zxid
	r.records++
	known := x.HasDigest && x.DigestVersion == zkfiles.DigestVersion
	switch is := r.replay.Digest(); {
	case known && is == r.digests.OfTree(x, is):
		r.compared++
		r.equalUpTo = x.Zxid
	case known && !r.fuzzy:
		return fmt.Errorf("%w: after transaction %v the digest is %#x, and that of the source %#x", ErrDiffers, x.Zxid, is, x.Digest)
	case !follows:
		return fmt.Errorf("%w: transaction %v was sent after %v: those in between are missing", ErrDiffers, x.Zxid, last)
	}
	return nil
}

// Finish completes the tree for an ensemble of its own, and returns it. The replica must not be
// used afterwards. closed is how many sessions owned ephemerals and were not open.
func (r *Replica) Finish() (t *datatree.Tree, closed int, err error) {
	// A leader that has written nothing yet shows its clients the beginning of its epoch.
	r.replay.SetZxid(proto.MakeZxid(r.epoch, 0))
	if closed, err = r.replay.Finish(); err != nil {
		return nil, 0, err
	}
	return r.replay.Tree(), closed, r.replay.Tree().Check()
}
