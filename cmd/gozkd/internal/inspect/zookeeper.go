package inspect

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/replica"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/zkdata"
	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/internal/zkfiles"
	"github.com/gozkd/gozkd/proto"
)

// zooKeeper is a Source in ZooKeeper's formats.
type zooKeeper struct {
	logs  string // a log, or a directory with logs; "": none
	state func() (*datatree.Tree, []string, error)
	notes []string
}

func isZooKeeperLog(_ string, _ os.FileInfo, head []byte) bool {
	return strings.HasPrefix(string(head), "ZKLG")
}

func openZooKeeperLog(path, _ string) (Source, error) {
	return &zooKeeper{logs: path, state: func() (*datatree.Tree, []string, error) { return nil, nil, errNoState }}, nil
}

// isZooKeeperSnapshot recognizes a compressed snapshot by its name.
func isZooKeeperSnapshot(path string, info os.FileInfo, head []byte) bool {
	name := filepath.Base(path)
	packed := strings.HasPrefix(name, "snapshot.") && (strings.HasSuffix(name, ".gz") || strings.HasSuffix(name, ".snappy"))
	return !info.IsDir() && (strings.HasPrefix(string(head), "ZKSN") || packed)
}

func openZooKeeperSnapshot(path, _ string) (Source, error) {
	return &zooKeeper{state: func() (*datatree.Tree, []string, error) {
		t, err := zkdata.ReadSnapshot(context.Background(), path)
		return t, nil, err
	}}, nil
}

func isZooKeeperDir(path string, info os.FileInfo, _ []byte) bool {
	// A server of ours may have taken the place of a ZooKeeper.
	_, err := os.Stat(filepath.Join(path, "checkpoint.db"))
	return info.IsDir() && err != nil && zkdata.HoldsZooKeeper(path)
}

func openZooKeeperDir(path, logDir string) (Source, error) {
	z := &zooKeeper{logs: path, state: func() (*datatree.Tree, []string, error) {
		return zkdata.ReadDirectory(context.Background(), path, logDir)
	}}
	if logDir != "" {
		z.logs = logDir
	}
	return z, nil
}

// Notes implements Source.
func (z *zooKeeper) Notes() []string { return z.notes }

var errNoLog = errors.New("a snapshot alone holds no transactions: name a log, or the dataDir")

// Transactions implements Source.
func (z *zooKeeper) Transactions(f func(*replica.Txn) bool) (err error) {
	if z.logs == "" {
		return errNoLog
	}
	z.notes, err = zkdata.ReadLogs(z.logs, func(r *zkfiles.Record) bool {
		t := zooKeeperTxn(&r.Txn)
		t.Zxid, t.Time, t.Session, t.Cxid, t.HasCxid = r.Zxid, time.UnixMilli(r.TimeMs).UTC(), r.Session, r.Cxid, true
		return f(&t)
	})
	return err
}

// State implements Source. Of a damaged snapshot it has the znodes before the damage.
func (z *zooKeeper) State() (tree *datatree.Tree, err error) {
	tree, z.notes, err = z.state()
	return tree, err
}

// zooKeeperTxn returns a transaction of ZooKeeper's log. ZooKeeper logs results, so each is known.
func zooKeeperTxn(in *zkfiles.Txn) replica.Txn {
	t := replica.Txn{Op: in.Op.String(), Path: in.Path, ACL: in.ACL, Deleted: in.Paths, TimeoutMs: in.TimeoutMs, Known: true, Err: in.Err}
	switch in.Op {
	case proto.OpCreate, proto.OpCreate2:
		t.Data, t.HasData, t.Mode = in.Data, true, "persistent"
		if in.Ephemeral {
			t.Mode = "ephemeral"
		}
	case proto.OpCreateContainer:
		t.Data, t.HasData, t.Mode = in.Data, true, "container"
	case proto.OpCreateTTL:
		t.Data, t.HasData, t.Mode = in.Data, true, "ttl"
	case proto.OpSetData, proto.OpReconfig:
		t.Data, t.HasData, t.Version = in.Data, true, &in.Version
	case proto.OpSetACL, proto.OpCheck:
		t.Version = &in.Version
	case proto.OpMulti:
		failed := in.Failed()
		for i := range in.Ops {
			op := zooKeeperTxn(&in.Ops[i])
			if failed {
				if op.Err == proto.OK { // undone, although it is in the log as if it had been done
					op.Err = proto.ErrRuntimeInconsistency
				} else if t.Err == proto.OK && op.Err != proto.ErrRuntimeInconsistency {
					t.Err = op.Err
				}
			}
			t.Ops = append(t.Ops, op)
		}
	}
	return t
}
