package server

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gozkd/gozkd/consensus"
	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/internal/memberid"
	"github.com/gozkd/gozkd/internal/serverlist"
	"github.com/gozkd/gozkd/proto"
)

func (c *Config) parseMembers() (serverlist.Set, error) {
	if len(c.Members) == 0 {
		return nil, nil
	}
	var set serverlist.Set
	var errs []error
	for _, line := range c.Members {
		one, _, err := serverlist.ParseConfig(line)
		if err != nil {
			errs = append(errs, fmt.Errorf("server: Members: %w", err))
		}
		for _, m := range one {
			if m.SecurePort != 0 {
				errs = append(errs, fmt.Errorf("server: Members: %s has a secure client port: remove it, and set SecureListen",
					m.Key()))
			}
			if _, twice := set.Get(m.ID); twice {
				errs = append(errs, fmt.Errorf("server: Members: %s is named twice", m.Key()))
			}
			set = set.With(m)
		}
	}
	if _, ok := set.Get(uint64(c.MemberID)); !ok {
		errs = append(errs, fmt.Errorf("server: MemberID is %d (server.%d), which is not among Members", c.MemberID, memberid.Number(c.MemberID)))
	}
	return set, errors.Join(errs...)
}

// followMembers tells consensus the membership that the state wants, and the members' addresses. It
// also makes this server's own ports move. It must be called after the membership in the state may
// have changed, on the goroutine of Apply or before that goroutine runs.
func (s *Server) followMembers() {
	if s.alone() {
		return
	}
	current, version := s.state.tree.Config()
	t := consensus.Target{Voters: current.Voters(), Learners: current.Observers()}
	wanted := current
	pending, changing := s.state.tree.PendingConfig()
	if changing {
		t = consensus.Target{Serial: uint64(pending.Serial), Voters: pending.Members.Voters(), Learners: pending.Members.Observers()}
		for _, m := range pending.Members {
			if _, known := wanted.Get(m.ID); !known {
				wanted = wanted.With(m)
			}
		}
	}
	s.configured.begun.Store(version != 0 || changing)
	s.configured.done.Store(version != 0)
	s.node.SetTarget(t)
	s.ports.move(current, version, wanted)
	if why := s.outside(current, version, changing); why != "" {
		s.cfg.Logger.Warn(why, "members", len(current))
	}
}

// outside returns why this server has no vote and what to do, if it is not a member of the state's
// ensemble, or "".
func (s *shared) outside(current serverlist.Set, version proto.Zxid, changing bool) string {
	if _, in := current.Get(uint64(s.cfg.MemberID)); in || version == 0 || changing || s.alone() {
		return ""
	}
	return "this server is not a member of the ensemble, or no longer: it has no vote; stop it, or " + s.howToJoin()
}

// membersKnown reports whether /zookeeper/config has the members. The first client of a new
// ensemble waits for them. Clients of a standalone server that grows into an ensemble do not: it
// serves alone until others are there. voters are those of the node.
func (s *Server) membersKnown(voters []uint64) bool {
	return s.alone() || s.configured.done.Load() || !slices.Equal(voters, s.members.Voters())
}

// reconciled is called by consensus, on the leader, when raft has adopted the pending members, or
// cannot adopt them.
func (s *Server) reconciled(done consensus.Reconciled) {
	body := datatree.ConfigDoneBody{Serial: proto.Zxid(done.Serial)}
	if !done.Reached {
		body.Code = proto.ErrNewConfigNoQuorum
	}
	s.propose(datatree.Request{Op: proto.OpConfigDone, Body: body.Append(nil)}, nil)
}

// noteConfig follows the membership in the state, and answers the client whose change is done. ref
// is nil unless this server proposed the request.
func (a *applier) noteConfig(req *datatree.Request, res *datatree.Result, ref any, now time.Time) {
	s := a.s
	switch {
	case res.Pending:
		if w, ok := ref.(*clientWrite); ok {
			a.reconfigs[res.Serial] = w
			s.writes.Release(w.bytes(), w.place) // a reconfig may take long, and does not wait for the disk
		}
		a.membersChanged = true
	case req.Op == proto.OpConfigDone && res.Serial != 0:
		a.membersChanged = true
		if w := a.reconfigs[res.Serial]; w != nil {
			delete(a.reconfigs, res.Serial)
			if s.trail.On() {
				s.trail.Write(w.audited(&w.req, res, now))
			}
			a.touch(w.conn, touchedByReply)
			w.conn.complete(&a.batch, w, res, now)
		}
		current, version := s.state.tree.Config()
		switch {
		case !s.life.Serving.Load(): // the log is applied again after a start
		case res.Err == proto.OK:
			s.cfg.Logger.Info("members of the ensemble",
				"voters", memberid.Numbers(current.Voters()), "observers", memberid.Numbers(current.Observers()), "version", version.String())
		default:
			s.cfg.Logger.Warn("the members of the ensemble were not changed; connect a majority of the new voters, and repeat the reconfig", "reason", res.Err.String())
		}
	}
}

// duringReconfig handles a request that comes while a reconfig waits for its reply. That reply has
// a higher zxid than replies to later requests would have now, so they must come after it. done is
// false if the reconfig was answered meanwhile.
func (c *conn) duringReconfig(r *received) (p pause, done bool) {
	switch {
	case c.queue.head() != queued(c.reconfiging):
		c.reconfiging = nil
		return pauseNone, false
	case r.Op != proto.OpPing:
		return pauseAlone, true
	}
	// A reconfig can take longer than a client waits for its pings.
	c.Out.Borrow()
	at := c.Out.Len()
	c.read(r.stats, r.Op, r.Xid, nil, nil)
	r.stats.Received()
	r.stats.Answered(r.Op, r.now, false, c.Out.Len()-at)
	c.stats.Sent++
	return pauseNone, true
}

func (c *conn) reconfig(r *received) proto.ErrCode {
	d := r.decoder()
	new(proto.ReconfigRequest).Decode(&d)
	switch {
	case d.Err() != nil:
		return proto.ErrMarshallingError
	case !c.server.live.Load().ReconfigEnabled:
		return proto.ErrReconfigDisabled
	case c.server.alone():
		c.logger().Info("reconfig refused: this server is standalone; " +
			"with its server line and standaloneEnabled=false it becomes an ensemble of one, which can grow")
		return proto.ErrUnimplemented
	}
	return proto.OK
}
