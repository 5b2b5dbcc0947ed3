package server

import (
	"context"
	"fmt"

	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/proto"
)

// Multi carries out all of ops or none, and returns when they are applied here. Multi checks no ACL
// and no quota. The ephemeral znodes that ops create belong to the session; 0: there is no session.
// Errors: ErrNoSession; an error that wraps the code of the operation that failed and names its
// path.
func (s *Server) Multi(ctx context.Context, session int64, ops ...proto.MultiOp) error {
	var r datatree.Request
	if session != 0 {
		info, ok, _ := s.state.session(proto.SessionID(session))
		if !ok {
			return fmt.Errorf("%w: %v", ErrNoSession, proto.SessionID(session))
		}
		r.Session, r.ConnEpoch = info.ID, info.ConnEpoch
	}
	failed, err := s.multi(ctx, r, ops)
	if failed >= 0 {
		return fmt.Errorf("server: multi: %v of %q: %w", ops[failed].Op, ops[failed].Path, err)
	}
	return err
}

// multi proposes ops on behalf of r's session. failed is the index of the operation that failed
// with err, or -1 if none did or the multi was refused as a whole.
func (s *Server) multi(ctx context.Context, r datatree.Request, ops []proto.MultiOp) (failed int, err error) {
	r.Op, r.Body = proto.OpMulti, (&proto.MultiRequest{Ops: ops}).Append(nil)
	failed = -1
	var opCode proto.ErrCode
	err = s.writeOwn(ctx, r, func(res *datatree.Result) {
		for i := range res.Multi {
			if part := &res.Multi[i]; part.Op == proto.OpError && part.Err != proto.OK && part.Err != proto.ErrRuntimeInconsistency {
				failed, opCode = i, part.Err
			}
		}
	})
	if opCode == proto.ErrEphemeralOnLocalSession { // there is none at all
		opCode = proto.ErrSessionExpired
	}
	if failed >= 0 {
		return failed, opCode
	}
	return -1, err
}

// SetACL replaces the ACL of a znode, and returns when that is applied here. It checks no ACL.
func (s *Server) SetACL(ctx context.Context, path string, acl []proto.ACL) error {
	body := (&proto.SetACLRequest{Path: path, ACL: acl, Version: -1}).Append(nil)
	return s.writeOwn(ctx, datatree.Request{Op: proto.OpSetACL, Body: body}, func(*datatree.Result) {})
}

// writeOwn proposes a write without ACL checks. look is as for decide. The error wraps the code.
func (s *Server) writeOwn(ctx context.Context, r datatree.Request, look func(*datatree.Result)) error {
	// The schemes of ACLs are those that clients may name.
	const schemes = datatree.FlagX509 | datatree.FlagX509Text | datatree.FlagSASL
	r.Flags, r.MaxBuffer = datatree.FlagSkipACL|s.requestFlags()&schemes, s.cfg.MaxBuffer
	code, why := proto.OK, ""
	err := s.decide(ctx, []datatree.Request{r}, func(res *datatree.Result) {
		code, why = res.Err, res.Why
		look(res)
	})
	switch {
	case err != nil:
		return err
	case code != proto.OK && why != "":
		return fmt.Errorf("%w: %s", code, why)
	case code != proto.OK:
		return code
	}
	return nil
}
