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

// Snapshot returns the znodes as this server has them, for Rewind: data, ACLs, versions, counters, ephemerals too. What was just
// written at another member is in it after CatchUp.
func (s *Server) Snapshot() []byte {
	s.tree.RLock()
	defer s.tree.RUnlock()
	return s.state.Snapshot()
}

// Rewind puts the znodes back as a snapshot of this server or ensemble has them, all at once, and returns when that is
// applied here. Watches fire for what changes. Sessions and their connections stay as they are; the ephemerals of sessions that have
// ended since do not come back.
func (s *Server) Rewind(ctx context.Context, snapshot []byte) error {
	var why string
	code, err := s.decide(ctx, datatree.Request{Op: proto.OpRewind, Body: snapshot}, func(res *datatree.Result) { why = res.Why })
	if err == nil && code != proto.OK {
		err = fmt.Errorf("server: rewind: %w: %s", code, why)
	}
	return err
}

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
		raced := false
		r := datatree.Request{Op: proto.OpMulti, Flags: datatree.FlagSkipACL, MaxBuffer: s.cfg.MaxBuffer, Body: ops.Append(nil)}
		why := ""
		code, err := s.decide(ctx, r, func(res *datatree.Result) {
			why = res.Why
			for i, r := range res.Multi {
				switch {
				case r.Op != proto.OpError || r.Err == proto.OK || r.Err == proto.ErrRuntimeInconsistency:
				case r.Err == proto.ErrNodeExists || r.Err == proto.ErrNoNode:
					raced = true // a client was faster
				default:
					errs = append(errs, fmt.Errorf("server: load %q: %w", ops.Ops[i].Path, r.Err))
				}
			}
		})
		switch {
		case err != nil:
			return err
		case code != proto.OK:
			return fmt.Errorf("server: load: %w: %s", code, why)
		case !raced:
			return errors.Join(errs...)
		}
	}
}

// loadOps returns what makes the present znodes those that are to be.
func (s *Server) loadOps(znodes map[string][]byte) (ops proto.MultiRequest) {
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
		ops.Ops = append(ops.Ops, proto.MultiOp{Op: proto.OpCreate, Path: path, Data: data, ACL: proto.OpenACL()})
	}
	for _, path := range slices.Sorted(maps.Keys(znodes)) { // parents first
		if exists(path) {
			ops.Ops = append(ops.Ops, proto.MultiOp{Op: proto.OpSetData, Path: path, Data: znodes[path], Version: -1})
		} else {
			create(path, znodes[path])
		}
	}
	return ops
}
