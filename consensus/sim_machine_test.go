package consensus

import (
	"encoding/binary"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/gozkd/gozkd/consensus/internal/core"
	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/proto"
)

// simMachine is the state machine of the simulator's members: a datatree, and the membership that
// was requested last.
type simMachine struct {
	tree   *datatree.Tree
	target Target
	dirty  bool // target changed since the last Capture
}

func newSimMachine() *simMachine {
	return &simMachine{tree: datatree.New(datatree.Options{TrackDirty: true})}
}

// digest is equal if the state is equal.
func (s *simMachine) digest() uint64 {
	var b [64]byte
	n := binary.BigEndian.AppendUint64(b[:0], s.tree.Digest())
	n = binary.BigEndian.AppendUint64(n, uint64(s.tree.LastZxid()))
	n = appendTarget(n, s.target)
	return xxhash.Sum64(n)
}

// simRequest is a payload: the member, life and number of its proposal, and its content.
type simRequest struct {
	member, life, number uint64
	kind                 byte
	term                 uint64 // kindExpire: the epoch in which a leader decided it
	target               Target // kindTarget
	body                 []byte // other kinds: a datatree.Request
}

const (
	kindTree   = 1
	kindExpire = 2
	kindTarget = 3
	kindLevel2 = 4 // only at feature level 2
)

func (r *simRequest) append(b []byte) []byte {
	b = append(b, r.kind)
	for _, v := range [...]uint64{r.member, r.life, r.number, r.term} {
		b = binary.AppendUvarint(b, v)
	}
	if r.kind == kindTarget {
		return appendTarget(b, r.target)
	}
	return append(b, r.body...)
}

func decodeSimRequest(b []byte) (r simRequest, ok bool) {
	if len(b) == 0 {
		return r, false
	}
	r.kind = b[0]
	u := core.Uvarints{Rest: b[1:]}
	r.member, r.life, r.number, r.term = u.Next(), u.Next(), u.Next(), u.Next()
	if r.kind == kindTarget {
		r.target = decodeTarget(&u)
	} else {
		r.body = u.Rest
	}
	return r, !u.Bad
}

func appendTarget(b []byte, t Target) []byte {
	b = binary.AppendUvarint(b, t.Serial)
	for _, ids := range [...][]uint64{t.Voters, t.Learners} {
		b = binary.AppendUvarint(b, uint64(len(ids)))
		for _, id := range ids {
			b = binary.AppendUvarint(b, id)
		}
	}
	return b
}

func decodeTarget(r *core.Uvarints) (t Target) {
	t.Serial = r.Next()
	for _, ids := range [...]*[]uint64{&t.Voters, &t.Learners} {
		for n := r.Next(); n > 0 && !r.Bad; n-- {
			*ids = append(*ids, r.Next())
		}
	}
	return t
}

// apply applies one request, as the server does.
func (s *simMachine) apply(timeMs int64, r *simRequest) (datatree.Result, error) {
	if r.kind == kindTarget {
		s.target, s.dirty = r.target, true
		return datatree.Result{}, nil
	}
	if r.kind == kindLevel2 {
		return datatree.Result{}, nil
	}
	if err := datatree.ValidateRequest(r.body); err != nil {
		return datatree.Result{}, err
	}
	req := datatree.CommittedRequest(r.body, datatree.Identities{})
	res, _ := s.tree.Apply(datatree.Header{Zxid: s.tree.LastZxid().Next(), TimeMs: timeMs}, &req)
	return res, nil
}

// simChanges are the tree's changes followed by the target.
type simChanges struct {
	tree   *datatree.Changes
	target []byte // nil: unchanged
}

var targetKey = []byte("~target")

func (c simChanges) Len() int { return c.tree.Len() }

func (c simChanges) Range(put func(k, v []byte) error) error {
	if err := c.tree.Range(put); err != nil || c.target == nil {
		return err
	}
	return put(targetKey, c.target)
}

func (s *simMachine) capture() Changes {
	c := simChanges{tree: s.tree.Capture()}
	if s.dirty {
		c.target, s.dirty = appendTarget(nil, s.target), false
	}
	return c
}

func restoreSimMachine(kv iter.Seq2[[]byte, []byte]) (*simMachine, error) {
	s := &simMachine{}
	var bad error
	tree, err := datatree.Restore(datatree.Options{TrackDirty: true}, func(yield func(k, v []byte) bool) {
		for k, v := range kv {
			if string(k) == string(targetKey) {
				u := core.Uvarints{Rest: v}
				if s.target = decodeTarget(&u); u.Bad {
					bad = fmt.Errorf("target %x", v)
				}
				continue
			}
			if !yield(k, v) {
				return
			}
		}
	})
	s.tree = tree
	if err == nil {
		err = bad
	}
	return s, err
}

// simOpenACL is the ACL of all simulated znodes.
var simOpenACL = proto.OpenACL()

// randomWrite returns a request that a client may make of a server with this tree. There are few
// znodes, so that requests conflict.
func (s *simMachine) randomWrite(rng *rand.Rand, server uint8) []byte {
	r := datatree.Request{Server: server}
	var sessions []datatree.SessionInfo
	if n := s.tree.NumSessions(); n > 0 {
		sessions = slices.Collect(s.tree.Sessions())
	}
	if len(sessions) > 0 && rng.IntN(2) == 0 {
		owner := sessions[rng.IntN(len(sessions))]
		r.Session, r.ConnEpoch = owner.ID, owner.ConnEpoch
	}
	top := fmt.Sprintf("/n%d", rng.IntN(6))
	path := top
	if rng.IntN(2) == 0 {
		path = fmt.Sprintf("%s/c%d", top, rng.IntN(4))
	}
	data := binary.AppendUvarint(nil, rng.Uint64())
	switch p := rng.IntN(100); {
	case p < 8 && len(sessions) < 8:
		r.Op, r.Session, r.ConnEpoch = proto.OpCreateSession, 0, 0
		r.Body = (&datatree.CreateSessionBody{TimeoutMs: 10_000}).Append(nil)
	case p < 12 && len(sessions) > 0:
		owner := sessions[rng.IntN(len(sessions))]
		r.Op, r.Session = proto.OpReattachSession, owner.ID
		r.Body = (&datatree.CreateSessionBody{TimeoutMs: 10_000, Passwd: owner.Passwd}).Append(nil)
	case p < 15 && len(sessions) > 0:
		owner := sessions[rng.IntN(len(sessions))]
		r.Op, r.Session, r.ConnEpoch = proto.OpCloseSession, owner.ID, owner.ConnEpoch
	case p < 35 && r.Session != 0:
		mode := []proto.CreateMode{proto.ModeEphemeral, proto.ModeEphemeralSequential}[rng.IntN(2)]
		if r.Op = proto.OpCreate2; s.numEphemerals(r.Session) > 4 {
			mode = proto.ModeEphemeral
		}
		r.Body = (&proto.CreateRequest{Path: top + "/e", Data: data, ACL: simOpenACL, Mode: mode}).Append(nil, r.Op)
	case p < 55:
		r.Op = proto.OpCreate
		r.Body = (&proto.CreateRequest{Path: path, Data: data, ACL: simOpenACL}).Append(nil, r.Op)
	case p < 68:
		r.Op = proto.OpDelete
		r.Body = (&proto.PathVersionRequest{Path: path, Version: -1}).Append(nil)
	case p < 80:
		r.Op = proto.OpMulti
		r.Body = (&proto.MultiRequest{Ops: []proto.MultiOp{
			{Op: proto.OpCheck, Path: top, Version: -1},
			{Op: proto.OpCreate, Path: top + "/m", Data: data, ACL: simOpenACL},
			{Op: proto.OpSetData, Path: top + "/m", Data: data, Version: 0},
			{Op: proto.OpDelete, Path: top + "/m", Version: int32(rng.IntN(3)) - 1},
		}}).Append(nil)
	default:
		r.Op = proto.OpSetData
		r.Body = (&proto.SetDataRequest{Path: path, Data: data, Version: int32(rng.IntN(4)) - 1}).Append(nil)
	}
	return r.Append(nil)
}

func (s *simMachine) numEphemerals(id proto.SessionID) int {
	info, _ := s.tree.Session(id)
	return info.NumEphemerals
}

// randomExpiry returns a leader's proposal to expire a session, or nil.
func (s *simMachine) randomExpiry(rng *rand.Rand, server uint8, asClose bool) []byte {
	sessions := slices.Collect(s.tree.Sessions())
	if len(sessions) == 0 {
		return nil
	}
	victim := sessions[rng.IntN(len(sessions))]
	r := datatree.Request{
		Server: server, Session: victim.ID, ConnEpoch: victim.ConnEpoch, Op: proto.OpExpireSession,
		Body: datatree.ExpireSessionBody{Epoch: uint32(s.tree.LastZxid().Epoch())}.Append(nil),
	}
	if asClose {
		r.Op, r.Body = proto.OpCloseSession, nil
	}
	return r.Append(nil)
}
