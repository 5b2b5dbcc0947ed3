package inspect

import (
	"cmp"
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

// ofZooKeeper returns a source in ZooKeeper's formats. logs is a log, or a directory with logs.
func ofZooKeeper(logs string, state func() (*datatree.Tree, []string, error)) *source {
	s := &source{}
	s.transactions = func(f func(*replica.Txn) bool) (err error) {
		s.notes, err = zkdata.ReadLogs(logs, func(r *zkfiles.Record) bool {
			t := zooKeeperTxn(&r.Txn)
			t.Zxid, t.Time, t.Session, t.Cxid, t.HasCxid = r.Zxid, time.UnixMilli(r.TimeMs).UTC(), r.Session, r.Cxid, true
			return f(&t)
		})
		return err
	}
	s.state = func() (tree *datatree.Tree, err error) {
		tree, s.notes, err = state()
		return tree, err
	}
	return s
}

func openZooKeeperLog(path, _ string) (*source, error) {
	return ofZooKeeper(path, func() (*datatree.Tree, []string, error) { return nil, nil, errNoState }), nil
}

// isZooKeeperSnapshot recognizes a compressed snapshot by its name.
func isZooKeeperSnapshot(path string, info os.FileInfo, head []byte) bool {
	name := filepath.Base(path)
	packed := strings.HasPrefix(name, "snapshot.") && (strings.HasSuffix(name, ".gz") || strings.HasSuffix(name, ".snappy"))
	return !info.IsDir() && (strings.HasPrefix(string(head), "ZKSN") || packed)
}

// openZooKeeperSnapshot opens a snapshot. If it is damaged, the state has the znodes before that.
func openZooKeeperSnapshot(path, _ string) (*source, error) {
	return &source{
		transactions: func(func(*replica.Txn) bool) error {
			return errors.New("a snapshot alone holds no transactions: name a log, or the dataDir")
		},
		state: func() (*datatree.Tree, error) { return zkdata.ReadSnapshot(context.Background(), path) },
	}, nil
}

func isZooKeeperDir(path string, info os.FileInfo, _ []byte) bool {
	// A server of ours may have taken the place of a ZooKeeper.
	_, err := os.Stat(filepath.Join(path, "checkpoint.db"))
	return info.IsDir() && err != nil && zkdata.HoldsZooKeeper(path)
}

func openZooKeeperDir(path, logDir string) (*source, error) {
	return ofZooKeeper(cmp.Or(logDir, path), func() (*datatree.Tree, []string, error) {
		return zkdata.ReadDirectory(context.Background(), path, logDir)
	}), nil
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
