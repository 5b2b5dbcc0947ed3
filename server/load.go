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

// Load puts data at paths, all at once, and returns when that is applied here: znodes that are missing are created, persistent
// and open to everybody, with those above them, and others get the data. No ACL is asked. What clients could not read for its
// size is refused, as it is when they write it.
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
		ops := s.loadOps(znodes)
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

// loadOps returns what makes the present znodes those that are to be.
func (s *Server) loadOps(znodes map[string][]byte) (ops []proto.MultiOp) {
	s.tree.RLock()
	defer s.tree.RUnlock()
	there := make(map[string]bool)
	exists := func(path string) bool {
		if _, _, ok := s.state.Lookup(path); ok {
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
