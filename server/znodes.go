package server

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/proto"
)

// Znode is a znode at one moment. Data and ACL are shared and must not be changed.
type Znode = proto.Znode

// Walk calls f for the znode at path and all znodes below, parents first and siblings by name,
// until f returns false, all at the same moment. Walk checks no ACL. f must not call the server,
// which waits for it, and must not change Data and ACL, which are shared. Walk reports whether
// there is a znode at path.
func (s *Server) Walk(path string, f func(Znode) bool) bool {
	s.state.RLock()
	defer s.state.RUnlock()
	return s.state.tree.Walk(path, f)
}

// Load writes data to paths, all at once, and returns when that is applied on this server. Load
// sets the data of znodes that exist, and creates those that are missing, with their ancestors, as
// persistent znodes with an open ACL. Load checks no ACL. Data that is too large for clients to
// read is refused, like a client's write of such data.
func (s *Server) Load(ctx context.Context, znodes map[string][]byte) error {
	var errs []error
	for path := range znodes {
		if err := proto.ValidatePath(path); err != nil {
			errs = append(errs, fmt.Errorf("server: load %q: %w", path, err))
		}
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	if err := s.CatchUp(ctx); err != nil {
		return err
	}
	for {
		ops := s.state.loadOps(znodes)
		failed, err := s.multi(ctx, datatree.Request{}, ops)
		switch {
		case failed < 0 && errors.As(err, new(proto.ErrCode)):
			return fmt.Errorf("server: load: %w", err)
		case failed < 0:
			return err
		case errors.Is(err, proto.ErrNodeExists), errors.Is(err, proto.ErrNoNode): // a client was faster
		default:
			return fmt.Errorf("server: load %q: %w", ops[failed].Path, err)
		}
	}
}

// loadOps returns the operations that give the tree the wanted znodes.
func (s *state) loadOps(znodes map[string][]byte) (ops []proto.MultiOp) {
	s.RLock()
	defer s.RUnlock()
	there := make(map[string]bool)
	exists := func(path string) bool {
		if _, _, ok := s.tree.Lookup(path); ok {
			there[path] = true
		}
		return there[path]
	}
	var create func(path string, data []byte)
	create = func(path string, data []byte) {
		if parent := proto.ParentPath(path); !exists(parent) {
			create(parent, []byte{})
		}
		there[path] = true
		ops = append(ops, proto.MultiOp{Op: proto.OpCreate, Path: path, Data: data, ACL: proto.OpenACL()})
	}
	for _, path := range slices.Sorted(maps.Keys(znodes)) { // parents first
		if exists(path) {
			ops = append(ops, proto.MultiOp{Op: proto.OpSetData, Path: path, Data: znodes[path], Version: -1})
		} else {
			create(path, znodes[path])
		}
	}
	return ops
}
