package consensus

import (
	"errors"
	"io/fs"
	"syscall"

	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/internal/testkit/vfstest"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
)

// limitGrowth lets the leader propose a limit, near to what the state weighs, and lift it later. A
// leader that has lost its leadership meanwhile must not succeed.
func (w *simWorld) limitGrowth(s step) bool {
	l := w.leader()
	if l == nil {
		return false
	}
	weight := l.machine.tree.Weight()
	l.proposeLimit([...]int64{1, weight / 2, weight, weight + 100, weight + 2000}[s.Other])
	w.after(int64(s.ForMs), nil, func() {
		if l := w.leader(); l != nil {
			l.proposeLimit(0)
		}
	})
	return true
}

// proposeLimit proposes a limit of the state's growth; 0: none.
func (m *simMember) proposeLimit(weight int64) {
	body := datatree.SetLimitBody{Epoch: m.machine.tree.LastZxid().Epoch()}
	if weight > 0 {
		body.Limit = datatree.Limit{Weight: weight, Cause: datatree.LimitedByMemory, Member: uint8(m.id)}
	}
	r := datatree.Request{Op: proto.OpSetLimit, Server: uint8(m.id), Body: body.Append(nil)}
	m.propose(&simRequest{kind: kindTree, term: uint64(body.Epoch), body: r.Append(nil)})
}

// limitApplied returns the function that judges the result of the request that is applied next:
// what a state with a limit refuses is growth, and it refuses all growth beyond the limit (ADR 14).
// Times and versions of a Stat, which do not count as growth, may take some bytes more.
// There are too few sessions here for any to be refused, and no multi of these clients adds data.
func (c *simChecks) limitApplied(m *simMember, req *simRequest, first bool) (judge func(res *datatree.Result)) {
	w, t := m.w, m.machine.tree
	limit, weight := t.Limit(), t.Weight()
	r := datatree.CommittedRequest(req.body, datatree.Identities{})
	const statBytes = 16
	grows := limit.Weight != 0 && m.machine.grows(&r)
	return func(res *datatree.Result) {
		now, after, refused := t.Weight(), t.Limit(), res.Err == proto.ErrQuotaExceeded
		switch {
		case req.term != 0 && res.Err == proto.OK && uint64(t.LastZxid().Epoch()) != req.term:
			w.fatalf("member %d applies a %v of epoch %d in epoch %d", m.id, r.Op, req.term, t.LastZxid().Epoch())
		case refused && (!grows || now != weight):
			w.fatalf("member %d refuses a %v, which adds no data: the state weighed %d, and %d after it, with %+v", m.id, r.Op, weight, now, limit)
		case grows && now > weight && (limit.Full || now > limit.Weight+statBytes):
			w.fatalf("member %d lets a %v add %d bytes to a state of %d with %+v", m.id, r.Op, now-weight, weight, limit)
		case after.Full && now < after.Weight/100*95:
			w.fatalf("member %d is still full after a %v: %d with %+v", m.id, r.Op, now, after)
		}
		if first && refused {
			w.stats.growthRefused++
		}
		if first && after.Full && !limit.Full {
			w.stats.timesFull++
		}
	}
}

// grows reports whether a request would add data, if it succeeds.
func (s *simMachine) grows(r *datatree.Request) bool {
	if r.Op != proto.OpSetData {
		return r.Op == proto.OpCreate || r.Op == proto.OpCreate2
	}
	var set proto.SetDataRequest
	d := jute.NewDecoder(r.Body)
	set.Decode(&d)
	stat, _ := s.tree.Exists(set.Path, datatree.Caller{}) // without a znode the set fails
	return len(set.Data) > int(stat.DataLength)
}

// shrink takes memory from a member, until it gets it back: it has no room for a second state, and
// from its next start on keeps few entries. One of choices is that it starts again at once.
func (m *simMember) shrink(choice int, ms int64) {
	m.tight = true
	if choice == 0 {
		m.w.kill(m, false, ms)
	}
	m.w.after(60_000+ms, nil, func() { m.tight = false })
}

func (m *simMember) checkpointRequests() int {
	if m.w.plan.Rapid || m.tight {
		return 40
	}
	return 400
}

// fillDisks fills the disk of a member until a time, or those of two or of all members.
func (w *simWorld) fillDisks(first *simMember, n int, until int64) {
	for i := range n {
		w.members[(int(first.id)-1+i)%len(w.members)].disk.fullUntil = until
	}
}

// lacksRoom returns the error of an operation that needs room on a full disk.
func (d *simDisk) lacksRoom(kind vfstest.OpKind, path string) error {
	if d.fullUntil <= d.w.now || kind != vfstest.OpWrite && kind != vfstest.OpCreate && kind != vfstest.OpPreallocate {
		return nil
	}
	return &fs.PathError{Op: string(kind), Path: path, Err: syscall.ENOSPC}
}

// outOfRoom ends the member's life if its disk is full. It starts again when there is room.
func (m *simMember) outOfRoom(err error) bool {
	if !errors.Is(err, syscall.ENOSPC) {
		return false
	}
	m.w.stats.outOfRoom++
	m.stop(false)
	m.w.after(max(0, m.disk.fullUntil-m.w.now)+1+m.w.rng.Int64N(2000), nil, m.restart)
	return true
}
