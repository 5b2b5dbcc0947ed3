package server

import (
	"cmp"
	"slices"
	"time"

	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
	"github.com/gozkd/gozkd/server/identity"
	"github.com/gozkd/gozkd/server/internal/meter"
	"github.com/gozkd/gozkd/server/internal/tenant"
)

// spending is how far the next request of a connection is with the budgets that it is charged to.
type spending struct {
	paid  bool      // it was charged, and may be handled from until on
	since time.Time // when it began to wait; zero: it has not
	until time.Time // when it is routed again, if it waits; not before, though pings are
	// inVain is when the first of the requests came that were refused without one that was served
	// after it.
	inVain time.Time
}

// pingFrame is a ping of any client, with its length.
var pingFrame = []byte{3: proto.RequestHeaderBytes, 4: 0xff, 5: 0xff, 6: 0xff, 7: 0xfe, 11: byte(proto.OpPing)}

// chargedRequest is request for a server with budgets: it makes the request wait, or refuses it,
// if it is over a budget. The tree's lock is held, and c is locked.
func (c *conn) chargedRequest(r *received) (p pause, err error) {
	// A ping comes before the request that waits, which c.spending is about.
	if r.Op == proto.OpPing && r.Xid == proto.XidPing && len(r.body) == 0 {
		return c.request(r)
	}
	now := time.Now() // budgets have the runtime's clock: r.now may jump
	if now.Before(c.spending.until) {
		return pauseBudget, nil
	}
	cfg := c.server.live.Load()
	if !c.spending.paid && !cfg.IgnoreBudgets && c.Admitted(r.Op, cfg.Auth.Required) {
		if r.Op.Info().Path == proto.PathEach && len(r.body) > cheapBulkBytes && !r.turn { // the bill takes some time
			return pauseTurn, nil
		}
		bill := c.server.state.bill(r, c.caller(c.IDs))
		// A client that hears nothing for much longer takes its server for dead.
		most := min(cfg.BudgetWait, time.Duration(c.timeoutMs)*time.Millisecond/3)
		switch waits, refused := c.spending.pay(&bill, r.Op, now, tenant.Claim{Client: uint64(c.id), Most: most}); {
		case refused:
			r.stats.InSpace(meter.BudgetRefusals, r.Op, r.body)
			c.refuseRequest(r, proto.ErrThrottledOp)
			c.noteRequest(r)
			c.spending = spending{inVain: cmp.Or(c.spending.inVain, c.spending.since)}
			return pauseNone, nil
		case waits:
			if c.spending.since.IsZero() {
				c.spending.since = now
				r.stats.InSpace(meter.BudgetWaits, r.Op, r.body)
			}
			return pauseBudget, nil
		}
	}
	if p, err = c.request(r); p == pauseNone || !p.again {
		c.spending = spending{}
	}
	return p, err
}

// pay charges a request. waits says that it must be routed again at s.until.
func (s *spending) pay(bill *tenant.Bill, op proto.OpCode, now time.Time, by tenant.Claim) (waits, refused bool) {
	if by.Since = cmp.Or(s.inVain, s.since, now); !s.since.IsZero() {
		by.Waited = min(by.Most, now.Sub(s.since))
	}
	wait, ok := bill.Take(now, by)
	if !ok && (op == proto.OpSetWatches || op == proto.OpSetWatches2) { // a refusal would lose watches
		wait, ok = by.Most-by.Waited, true
		bill.Take(now, tenant.Claim{Most: wait + time.Second}) // many of them shut nobody out for longer
	}
	s.paid, s.until = ok, now.Add(wait)
	return wait > 0, !ok && wait == 0
}

// bill returns the charge of a request. The lock is held.
func (s *state) bill(r *received, who datatree.Caller) (bill tenant.Bill) {
	op, body := r.Op, r.body
	switch op.Info().Class {
	case proto.ClassWrite, proto.ClassRead, proto.ClassBulkRead, proto.ClassSync:
	default:
		return bill
	}
	if op == proto.OpPing || op == proto.OpCloseSession ||
		slices.ContainsFunc(who.IDs, func(id proto.ID) bool { return id.Scheme == identity.SchemeSuper }) {
		return bill
	}
	total := tenant.Cost{Ops: 1, Bytes: float64(4 + proto.RequestHeaderBytes + len(body) + r.leftOut)}
	switch op.Info().Path {
	case proto.PathFirst:
		if path, ok := meter.RequestPath(op, body); ok {
			if tenant.Free(path) {
				return bill
			}
			total.Bytes += s.readBytes(op, path, who)
			s.budgets.ChargePath(&bill, path, total)
		}
	case proto.PathEach:
		d := jute.NewDecoder(body)
		d.AliasStrings()
		var m proto.MultiRequest
		if m.Decode(&d, op) != nil {
			break // it fails
		}
		total.Ops = float64(len(m.Ops))
		for i := range m.Ops {
			part := &m.Ops[i]
			if tenant.Free(part.Path) {
				total.Ops--
				continue
			}
			read := s.readBytes(part.Op, part.Path, who)
			total.Bytes += read
			cost := tenant.Cost{Ops: 1, Bytes: float64(len(part.Path)+len(part.Data)) + read}
			s.budgets.ChargePath(&bill, part.Path, cost)
		}
		if total.Ops == 0 && len(m.Ops) > 0 {
			return bill
		}
		total.Ops = max(1, total.Ops)
	}
	s.budgets.ChargeIDs(&bill, who.IDs, total)
	return bill
}

// readBytes returns how many bytes of a znode a request reads, if the client may.
func (s *state) readBytes(op proto.OpCode, path string, who datatree.Caller) float64 {
	if op != proto.OpGetData && !isList(op) {
		return 0
	}
	return float64(s.tree.ReplyBytes(op, path, who))
}
