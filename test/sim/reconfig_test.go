package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/internal/serverlist"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server"
	"github.com/gozkd/gozkd/server/facts"
	"github.com/gozkd/gozkd/server/identity"
)

// operator is the user and the password with which an operator reconfigures.
const (
	operator       = "super:pw"
	operatorDigest = "super:0bX78nEegDzJM3ju0iLBEJdWzjg="
)

// role is the part that a member has in the ensemble.
type role int

const (
	outside role = iota // not a member; its process may run
	observer
	voter
)

func (r role) String() string { return [...]string{"outside", "observer", "voter"}[r] }

// reconfigurations returns the faults that change the members of the ensemble.
func reconfigurations() []*fault {
	return []*fault{
		{name: "role changed", weight: 2, reconfigures: true, inject: stages("role changed", changeRole)},
		{name: "removed", weight: 2, reconfigures: true, inject: stages("removed", remove)},
		{name: "left by itself", weight: 2, reconfigures: true, inject: stages("left by itself", leave)},
		{name: "replaced", weight: 4, reconfigures: true, inject: stages("replaced", replace)},
		{name: "port moved", weight: 2, reconfigures: true, inject: stages("port moved", movePort)},
		{name: clientPortMoved, weight: 2, reconfigures: true, inject: stages(clientPortMoved, moveClientPort)},
		{name: "added", weight: 3, reconfigures: true, inject: add},
	}
}

// A reconfiguration changes the part of one member in the ensemble, stage by stage, while other
// faults go on. The last stage, which makes the member what it was, waits for the end of the fault.
// Only the goroutine of the nemesis uses a reconfiguration.
type reconfiguration struct {
	w      *world
	kind   string
	m      *member
	stages []*stage // that are not done
	asked  *stage   // that was asked for last
	ending bool     // the last stage may begin
	life   *life    // that asks for its own change
	cancel context.CancelFunc
	goal   int64         // zxid that the member must come to; 0: it does not serve yet
	done   *atomic.Int64 // zxid of the change that was asked for last; 0: not yet
}

// stage is one change of the members.
type stage struct {
	to     role
	itself bool   // the member asks, as programs do that join or leave
	serves bool   // nobody asks: the member serves, and follows
	before func() // nil: nothing
	asked  func() // nil: nothing
	after  func() // nil: nothing
}

// stages returns the fault that takes a member through stages.
func stages(kind string, of func(m *member, s step) []*stage) func(*nemesis, *member, step) func() {
	return func(n *nemesis, m *member, s step) func() {
		if slices.ContainsFunc(n.w.reconfigs, func(r *reconfiguration) bool { return r.m == m }) {
			return nil
		}
		r := &reconfiguration{w: n.w, kind: kind, m: m, stages: of(m, s)}
		if len(r.stages) == 0 {
			return nil
		}
		n.w.reconfigs = append(n.w.reconfigs, r)
		r.ask(r.stages[0])
		return func() {
			r.ending = true
			left := len(r.stages)
			if interrupted := s.other%3 == 0; left > 1 && interrupted || left == 1 && r.asked != r.stages[0] {
				r.stages = r.stages[left-1:]
				r.ask(r.stages[0])
			}
		}
	}
}

// changeRole makes a voter an observer, or an observer a voter.
func changeRole(m *member, _ step) []*stage {
	if m.home == outside {
		return nil
	}
	return []*stage{{to: observer + voter - m.home}, {to: m.home}}
}

// remove removes a member whose process goes on.
func remove(m *member, _ step) []*stage {
	if m.home == outside {
		return nil
	}
	return []*stage{{to: outside}, {to: m.home}}
}

// leave lets a member remove itself and stop. If the members have a secret, it also joins by itself
// when it has started again; otherwise the others would not let it follow them.
func leave(m *member, _ step) []*stage {
	if m.home == outside || m.life == nil {
		return nil
	}
	return []*stage{{to: outside, itself: true, after: m.quit}, {to: m.home, itself: m.w.plan.modes.secret, before: m.start}}
}

// replace removes a member, and adds it again with an empty disk.
func replace(m *member, s step) []*stage {
	if m.home == outside {
		return nil
	}
	as := m.home
	if s.other%4 == 0 {
		as = observer
	}
	return []*stage{{to: outside}, {to: as, before: m.startEmpty}, {to: m.home}}
}

// movePort moves a member's port for others. The former port closes when all know of the new one.
func movePort(m *member, _ step) []*stage {
	if m.home == outside || m.formerPort != 0 {
		return nil
	}
	return []*stage{{to: m.home, before: func() {
		m.formerPort, m.peerPort = m.peerPort, m.peerPort+1
		if m.life != nil {
			_ = m.life.peers.Add(m.w.listen(m.peerAddress())) // fails if the process is ending
		}
	}}}
}

const clientPortMoved = "client port moved"

// moveClientPort moves a member's port for clients, and back.
func moveClientPort(m *member, _ step) []*stage {
	if m.home == outside {
		return nil
	}
	moveTo := func(port int) *stage { return &stage{to: m.home, before: func() { m.clientPort = port }} }
	return []*stage{moveTo(secondClientPort), moveTo(firstClientPort)}
}

// add adds the member that is not one of the first.
func add(n *nemesis, _ *member, s step) func() {
	return stages("added", func(m *member, s step) []*stage {
		as := voter
		if s.other%3 == 0 {
			as = observer
		}
		return []*stage{{to: as, itself: n.w.plan.modes.secret && s.other%2 == 0, before: m.startEmpty}, {to: outside, after: m.quit}}
	})(n, n.w.members[len(n.w.members)-1], s)
}

// startEmpty starts the member with an empty disk, and with the members of today in its lines.
func (m *member) startEmpty() {
	m.powerLoss()
	m.disk.replace(newDisk().mem)
	m.doubtful = true // it may be added without an answer, if the others are a majority
	m.lines = m.w.lines()
	if m.role == outside {
		m.lines = append(m.lines, m.line())
	}
	m.start()
}

// quit stops the process, which can end by itself only if the member suffers nothing.
func (m *member) quit() {
	if m.fault != "" {
		m.kill()
	}
	m.stop()
}

// ask begins a stage, or asks for it again.
func (r *reconfiguration) ask(s *stage) {
	w, m := r.w, r.m
	if r.cancel != nil {
		r.cancel()
	}
	if r.asked != s && s.before != nil {
		s.before()
	}
	if r.asked != s && s.asked != nil {
		s.asked()
	}
	if r.asked, r.life, r.done = s, m.life, new(atomic.Int64); s.serves {
		r.cancel, r.goal = func() {}, 0
		return
	}
	w.mu.Lock()
	m.unsure = m.unsure || s.to != m.role
	w.mu.Unlock()
	w.asked++
	q := &request{w: w, rng: w.rand(fmt.Sprintf("reconfig-%d", w.asked)), id: strconv.Itoa(m.id), line: m.lineAs(s.to), done: r.done}
	if s.itself {
		q.life = m.life
	}
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel = cancel
	w.requests.Go(func() { q.run(ctx) }) // ends when it is carried out, or canceled; endAll waits for it
}

// noteFollows ends a stage in which a member must serve, when it has also applied what the others
// had applied once it served.
func (r *reconfiguration) noteFollows() {
	switch st := r.m.status(); {
	case !st.Serving:
	case r.goal == 0:
		r.goal = r.w.committed() + 1
	case st.Zxid >= r.goal:
		r.done.Store(st.Zxid)
	}
}

// committed returns the last zxid that a member has applied.
func (w *world) committed() (zxid int64) {
	for _, m := range w.members {
		if !m.clock.isPaused() {
			zxid = max(zxid, m.status().Zxid)
		}
	}
	return zxid
}

// reconfigure notes the stages that are done, and begins the next ones. It reports whether all
// reconfigurations have ended by now.
func (w *world) reconfigure() (ended bool) {
	for _, r := range slices.Clone(w.reconfigs) {
		if r.asked.serves && r.asked == r.stages[0] {
			r.noteFollows()
		}
		zxid := r.done.Load()
		itself := r.asked.itself && r.asked == r.stages[0] // not if a stage waits
		if zxid == 0 && itself && r.asked.to == outside {
			zxid = w.knownToHaveLeft(r.m)
		}
		if zxid == 0 {
			if itself && r.m.life != nil && r.m.life != r.life { // as a program does when it starts
				r.ask(r.asked)
			}
			continue
		}
		w.logs.Info("RECONFIGURED", "kind", r.kind, "member", r.m.id, "to", r.asked.to.String())
		w.mu.Lock()
		r.m.role, r.m.unsure = r.asked.to, false
		w.mu.Unlock()
		r.m.changedAt = zxid
		w.reconfigured[r.kind+": "+r.asked.to.String()]++
		if r.asked.after != nil {
			r.asked.after()
		}
		switch r.stages = r.stages[1:]; {
		case len(r.stages) == 0:
			w.reconfigs = slices.DeleteFunc(w.reconfigs, func(other *reconfiguration) bool { return other == r })
			ended = len(w.reconfigs) == 0
		case len(r.stages) > 1 || r.ending:
			r.ask(r.stages[0])
		default:
			r.done = new(atomic.Int64) // the last stage waits
		}
	}
	for _, m := range w.members {
		if m.fault == "" && m.doubtful && m.status().Serving {
			m.doubtful = false
		}
		if m.formerPort != 0 && w.whole() && !slices.ContainsFunc(w.inside(), func(o *member) bool { return o.status().Zxid < m.changedAt }) {
			m.closeFormerPort()
		}
	}
	return ended
}

// knownToHaveLeft returns the zxid of another member that knows that m is none; 0: nobody does. A
// server that was cut off while it removed itself is refused by the others, and never knows.
func (w *world) knownToHaveLeft(m *member) int64 {
	for _, o := range w.inside() {
		if o == m || !o.status().Serving {
			continue
		}
		if !slices.ContainsFunc(o.life.s.Facts().Members(), func(s facts.MemberStatus) bool { return s.ID == m.id }) {
			return o.status().Zxid
		}
	}
	return 0
}

func (m *member) closeFormerPort() {
	former := m.peerListener(m.formerPort)
	m.formerPort = 0
	if former != nil {
		_ = m.life.peers.Remove(former) // an error would say that it was closed before
	}
}

// peerListener returns the listener at a port for other members, or nil.
func (m *member) peerListener(port int) net.Listener {
	if m.life == nil {
		return nil
	}
	all := m.life.peers.All()
	if i := slices.IndexFunc(all, func(l net.Listener) bool { return strings.HasSuffix(l.Addr().String(), ":"+strconv.Itoa(port)) }); i >= 0 {
		return all[i]
	}
	return nil
}

// request asks for a change of the line of one member until that is carried out. A change whose
// reply is lost may be carried out nevertheless, but not after a later change: each is for one
// version of the members.
type request struct {
	w        *world
	rng      *rand.Rand
	id, line string // an empty line: the member is removed
	life     *life  // that asks, for all members; nil: an operator asks, for a change
	done     *atomic.Int64
}

func (q *request) run(ctx context.Context) {
	for ctx.Err() == nil && q.done.Load() == 0 {
		if err := q.once(ctx); err != nil {
			q.w.logs.Info("reconfig again", "member", q.id, "line", q.line, "error", err.Error())
		}
		select {
		case <-ctx.Done():
		case <-time.After(between(q.rng, 0, 2*time.Second)):
		}
	}
}

func (q *request) once(ctx context.Context) error {
	const patience = 20 * time.Second
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cfg := client.Config{
		Servers: q.w.addresses(), SessionTimeout: 5 * tick, Auths: []client.Auth{{Scheme: "digest", Credential: []byte(operator)}},
		Dial: func(ctx context.Context, address string) (net.Conn, error) {
			return q.w.dial(ctx, probeHost, address)
		},
	}
	if q.life != nil {
		super := server.Caller{IDs: []proto.ID{{Scheme: identity.SchemeSuper}}, Origin: "scaling"}
		cfg.Auths, cfg.Dial = nil, func(ctx context.Context, _ string) (net.Conn, error) { return q.life.s.DialAs(ctx, super) }
	}
	c, err := client.Connect(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }() // otherwise its session expires
	text, stat, err := c.Config(ctx, false)
	if err != nil {
		return err
	}
	joining, leaving, all := q.line, "", ""
	if q.line == "" {
		leaving = q.id
	}
	if q.life != nil {
		members, _, err := serverlist.ParseConfig(string(text))
		if err != nil {
			return err
		}
		members = slices.DeleteFunc(members, func(m serverlist.Member) bool { return strconv.Itoa(int(m.ID)) == q.id })
		all, joining, leaving = strings.ReplaceAll(strings.TrimSpace(members.Text(0)+"\n"+q.line), "\n", ","), "", ""
	}
	_, stat, err = c.Reconfig(ctx, joining, leaving, all, int64(stat.Mzxid))
	if err == nil {
		q.done.Store(int64(stat.Mzxid))
	}
	return err
}
