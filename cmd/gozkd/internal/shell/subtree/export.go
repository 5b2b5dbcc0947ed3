package subtree

import (
	"context"
	"fmt"
)

// Exported counts the contents of an export.
type Exported struct {
	Znodes, Ephemerals int64
	Bytes              int64    // of data
	Missing            []string // the first paths that could not be read
	NMissing           int64    // number of paths that could not be read
	Masked             int64    // znodes whose ACL the server did not show in full
	Sequential         int64    // znodes with a sequential name
}

// maxNamed bounds the paths in Exported.Missing.
const maxNamed = 10

// Export writes a subtree as text, one line per call of write, and calls seen with the counts after
// each znode.
func Export(ctx context.Context, from Side, withACL bool, write func(line any) error, seen func(*Exported)) (*Exported, error) {
	e := &Exported{}
	if err := retry(func() error { _, err := from.ZK.Sync(ctx, from.Path); return err }); err != nil {
		return e, err
	}
	if err := write(Head{Version: formatVersion, Root: from.Path, Zxid: from.ZK.LastZxid().String()}); err != nil {
		return e, err
	}
	err := Walk(ctx, from.ZK, from.Path, Options{Data: true, ACL: withACL, Below: All, NoSystem: true, Kinds: from.Kinds}, func(n *Znode) error {
		if n.Denied != nil {
			if e.NMissing++; len(e.Missing) < maxNamed {
				e.Missing = append(e.Missing, n.Path)
			}
			return nil
		}
		e.count(n)
		defer seen(e)
		return write(n.Record())
	})
	if err != nil {
		return e, fmt.Errorf("after %d znodes: %w", e.Znodes, err)
	}
	return e, write(tail{End: true, Znodes: e.Znodes})
}

func (e *Exported) count(n *Znode) {
	e.Znodes++
	e.Bytes += int64(len(n.Data))
	if n.Stat.EphemeralOwner != 0 {
		e.Ephemerals++
	}
	if Masked(n.ACL) {
		e.Masked++
	}
	if Sequential(n.Path) {
		e.Sequential++
	}
}

// Sequential reports whether a path ends in ten digits, like the name of a sequential znode.
func Sequential(path string) bool {
	if len(path) < 10 {
		return false
	}
	for _, c := range path[len(path)-10:] {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}
