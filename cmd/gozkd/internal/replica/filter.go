package replica

import (
	"maps"
	"slices"
	"strings"

	"github.com/gozkd/gozkd/proto"
)

// Filter selects the changes of a znode from the transactions of a log, oldest first.
type Filter struct {
	Path  string
	Below bool // the znodes below Path as well
	// owners are the sessions of ephemerals that match, by path. Only of transactions whose result
	// is not known: otherwise the end of a session names them.
	owners map[string]proto.SessionID
}

// Matches reports whether the filter is for the znode at path.
func (f *Filter) Matches(path string) bool {
	return path == f.Path || f.Below && strings.HasPrefix(path, strings.TrimSuffix(f.Path, "/")+"/")
}

// Change returns the part of a transaction that concerns the znode, or nil.
func (f *Filter) Change(t *Txn) *Txn {
	if t.Failed() {
		return nil
	}
	var ops []Txn
	deleted := slices.DeleteFunc(slices.Clone(t.Deleted), func(path string) bool { return !f.Matches(path) })
	for i := range t.Ops {
		if op := f.operation(t, &t.Ops[i]); op != nil {
			ops = append(ops, *op)
		}
	}
	if ends := t.Op == proto.OpCloseSession.String() || t.Op == proto.OpExpireSession.String(); ends && !t.Known {
		for _, path := range slices.Sorted(maps.Keys(f.owners)) {
			if f.owners[path] == t.Session {
				deleted = append(deleted, path)
				delete(f.owners, path)
			}
		}
	}
	if len(ops) > 0 || len(deleted) > 0 {
		part := *t
		part.Ops, part.Deleted = ops, deleted
		return &part
	}
	return f.operation(t, t)
}

// operation returns op, which is a part of t or t itself, if it changes the znode.
func (f *Filter) operation(t, op *Txn) *Txn {
	if op.Op == proto.OpCheck.String() {
		return nil
	}
	path := op.Path
	if number, ok := strings.CutPrefix(f.Path, path); ok && op.Sequential && len(number) == 10 &&
		strings.Trim(number, "0123456789") == "" {
		path = f.Path // the operation lacks the number, so it may have made this znode
	}
	if !f.Matches(path) {
		return nil
	}
	if !t.Known && op.Mode == "ephemeral" {
		if f.owners == nil {
			f.owners = make(map[string]proto.SessionID)
		}
		f.owners[path] = t.Session
	}
	return op
}
