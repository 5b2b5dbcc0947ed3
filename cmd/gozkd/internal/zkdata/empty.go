package zkdata

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/internal/zkfiles"
	"github.com/gozkd/gozkd/proto"
)

// fromEmpty replays logs that begin with the first transaction over an empty tree. A server before
// 3.5 writes its first snapshot after about 100,000 transactions, not when it starts.
func (l *loader) fromEmpty() (*Loaded, error) {
	first, err := l.d.whole()
	if err != nil {
		return nil, err
	}
	if first == 0 || l.opt.Until.Zxid != 0 && l.opt.Until.Zxid < first {
		return nil, fmt.Errorf("%s: %w%s", l.d.Name, errNoSnapshot, l.why())
	}
	l.replay, l.digest, l.exact = datatree.NewReplay(datatree.New(datatree.Options{})), nil, true
	l.done.Snapshot, l.done.Znodes = File{}, 0
	if err := l.logs(); err != nil {
		return nil, wayOut(err, l.done.lastApplied, true)
	}
	return l.finish()
}

// whole returns the zxid of the first transaction in the logs if their ensemble had none before it,
// and otherwise 0. An epoch after the first proves nothing by its number: earlier leaders may have
// written nothing, or their logs may be missing. The first creation proves that nothing is missing
// if it raises the counter of the root's children from 0 to 1.
func (d *Directory) whole() (first proto.Zxid, err error) {
	var creation *zkfiles.Txn
	for r, err := range (&logFiles{files: d.Logs}).records() {
		if err != nil && (first == 0 || !errors.Is(err, zkfiles.ErrDamaged)) {
			return 0, err
		}
		if err != nil {
			break // the replay reports the damage
		}
		first = cmp.Or(first, r.Zxid)
		if creation = firstCreation(&r.Txn); creation != nil || first.Counter() != 1 {
			break
		}
	}
	switch {
	case first.Counter() != 1:
		return 0, nil
	case creation == nil || creation.ParentCversion == zkfiles.NoCversion:
		if first.Epoch() > 1 {
			return 0, nil
		}
	case proto.ParentPath(creation.Path) != "/" || creation.ParentCversion != 1:
		return 0, nil
	}
	return first, nil
}

// firstCreation returns the first operation of a transaction that creates a znode of users, or nil.
func firstCreation(t *zkfiles.Txn) *zkfiles.Txn {
	switch t.Op {
	case proto.OpCreate, proto.OpCreate2, proto.OpCreateContainer, proto.OpCreateTTL:
		if !strings.HasPrefix(t.Path, "/zookeeper/") {
			return t
		}
	case proto.OpMulti:
		if t.Failed() {
			return nil
		}
		for i := range t.Ops {
			if c := firstCreation(&t.Ops[i]); c != nil {
				return c
			}
		}
	}
	return nil
}
