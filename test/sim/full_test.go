package sim

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/gozkd/gozkd/internal/confighook"
	"github.com/gozkd/gozkd/internal/vfs"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server"
)

// Members may use dataLimit bytes of memory, and have freeDisk bytes on their disks, of which
// diskReserve are to stay free: two segments, as without a configured reserve.
const (
	dataLimit   = 64 << 20
	freeDisk    = 1 << 30
	diskReserve = 128 << 10
)

// room is what a member has for its state. It outlives the process.
type room struct {
	pressed bool         // owned by the goroutine of the nemesis
	taken   atomic.Int64 // memory, by others on the machine
	lost    atomic.Int64 // of the disk
}

// press takes memory or disk from one, two or all members, so that they can hold a byte, or about
// as much as the state weighs.
func press(take func(r *room, allowed int64)) func(*nemesis, *member, step) func() {
	return func(n *nemesis, first *member, s step) func() {
		weight := n.w.weight()
		if weight == 0 {
			return nil
		}
		var hit []*member
		for i := range []int{1, 1, 1, 2, len(n.w.members)}[s.other%5] {
			if m := n.w.members[(first.id-1+i)%len(n.w.members)]; !m.room.pressed {
				hit = append(hit, m)
			}
		}
		for _, m := range hit {
			m.room.pressed = true
			take(&m.room, max(1, weight*[]int64{0, 50, 90, 97, 101}[s.other/5%5]/100))
		}
		return func() {
			for _, m := range hit {
				m.room.release()
			}
		}
	}
}

func (r *room) takeMemory(allowed int64) { r.taken.Store(dataLimit - allowed) }

// takeDisk leaves as much on the disk as a checkpoint of so many bytes needs, besides the reserve.
func (r *room) takeDisk(allowed int64) { r.lost.Store(freeDisk - diskReserve - 2*allowed) }

func (r *room) release() {
	r.pressed = false
	r.taken.Store(0)
	r.lost.Store(0)
}

// configure tells a server how much room the member has.
func (r *room) configure(cfg *server.Config, hooks *confighook.Hooks) {
	cfg.DataLimit = dataLimit
	hooks.MemoryUsed = r.taken.Load
	hooks.Disk = func() vfs.Space { return vfs.Space{Size: freeDisk, Free: freeDisk - r.lost.Load()} }
}

// weight returns what the state weighs, or 0 if no member serves that would answer.
func (w *world) weight() int64 {
	for _, m := range w.members {
		if !m.clock.isPaused() && m.status().Serving {
			return m.life.s.Facts().Stats().Growth.Weight
		}
	}
	return 0
}

// growerHome is the parent of the growers' znodes.
const growerHome = "/growers"

// growthBound is how long it may take until all members know that they have room.
const growthBound = 10 * time.Second

// A grower is a client that creates znodes, and knows which of its requests add data. A full
// ensemble must refuse only these, and only while a member lacks room or cannot say that it has
// some again.
type grower struct {
	*mover
	made []string
	xid  int32
}

func (w *world) newGrower(name string) *grower {
	return &grower{mover: w.newMover(name, sessionTimeout)}
}

// grow works until stop is closed.
func (g *grower) grow(stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		case <-time.After(between(g.rng, 0, 2*time.Second) + g.w.rest(g.rng)):
		}
		c, err := g.dial(g.w.members[g.rng.IntN(len(g.w.members))])
		if err != nil {
			continue
		}
		if readOnly, ok := g.attach(c); ok && !readOnly {
			for range 1 + g.rng.IntN(6) {
				if g.once(func(op proto.OpCode, body []byte) (proto.ErrCode, error) {
					g.xid++
					return g.ask(c, g.xid, op, body)
				}) != nil {
					break
				}
			}
		}
		_ = c.Close() // the session lives on
	}
}

const growerData = 400

// once sends a request.
func (g *grower) once(ask func(op proto.OpCode, body []byte) (proto.ErrCode, error)) error {
	if len(g.made) == 0 || len(g.made) < 30 && g.rng.IntN(2) == 0 {
		g.tries++
		path, quiet := fmt.Sprintf("%s/%s-%d", growerHome, g.name, g.tries), g.w.quietFor()
		code, err := ask(proto.OpCreate, createOf(path, growerData))
		switch {
		case err == nil && code == proto.OK:
			g.made = append(g.made, path)
		case code == proto.ErrQuotaExceeded && quiet > sessionTimeout:
			g.w.complain("%s: a create is refused although no member has lacked room for %v", g.name, quiet)
		}
		return err
	}
	last := len(g.made) - 1
	path := g.made[g.rng.IntN(len(g.made))]
	remove := proto.PathVersionRequest{Path: path, Version: -1}
	op, body := proto.OpExists, (&proto.PathWatchRequest{Path: path}).Append(nil)
	switch g.rng.IntN(5) {
	case 0:
		op, body = proto.OpSetData, (&proto.SetDataRequest{Path: path, Data: make([]byte, growerData-1), Version: -1}).Append(nil)
	case 1, 2:
		path, g.made = g.made[last], g.made[:last]
		remove.Path = path
		op, body = proto.OpDelete, remove.Append(nil)
	case 3:
		path, g.made = g.made[last], g.made[:last]
		op, body = proto.OpMulti, (&proto.MultiRequest{Ops: []proto.MultiOp{
			{Op: proto.OpDelete, Path: path, Version: -1}, {Op: proto.OpCreate, Path: path, Data: make([]byte, growerData/2), ACL: proto.OpenACL()},
			{Op: proto.OpDelete, Path: path, Version: -1},
		}}).Append(nil)
	}
	code, err := ask(op, body)
	if code == proto.ErrQuotaExceeded {
		g.w.complain("%s: a %v of %s, which adds no data, is refused", g.name, op, path)
	}
	return err
}

// createOf returns the body of a request that creates a znode with so many bytes.
func createOf(path string, bytes int) []byte {
	create := proto.CreateRequest{Path: path, Data: make([]byte, bytes), ACL: proto.OpenACL()}
	return create.Append(nil, proto.OpCreate)
}

// judgeGrowth checks, when all members are well and have room, that data may be added, and that a
// full ensemble is full no longer when data were deleted, or when its members have room. Even if a
// member can hold nothing at all, a client gets a session.
func (w *world) judgeGrowth() {
	g := w.newGrower("judge")
	ballast, n := growerHome+"/ballast", 0
	try := func(op proto.OpCode, body []byte) (code proto.ErrCode) {
		c, err := g.dial(w.leader())
		if err != nil {
			return proto.ErrConnectionLoss
		}
		defer func() { _ = c.Close() }() // the session lives on
		if _, ok := g.attach(c); !ok {
			return proto.ErrConnectionLoss
		}
		if code, err = g.ask(c, 1, op, body); err != nil {
			return proto.ErrConnectionLoss
		}
		return code
	}
	creates := func(want proto.ErrCode) bool {
		return w.await(func() bool {
			n++
			return try(proto.OpCreate, createOf(fmt.Sprintf("%s/judge-%d", growerHome, n), growerData)) == want
		}, growthBound)
	}
	if !creates(proto.OK) {
		w.complain("growth is refused %v after all members are well and have room", growthBound)
		return
	}
	for _, m := range w.inside() { // nobody has as many clients
		for _, v := range m.life.s.Facts().Monitor() {
			if v.Name == "gozkd_crowded_refusals_total" && fmt.Sprint(v.Is) != "0" {
				w.complain("member %d has refused %v clients for want of memory", m.id, v.Is)
			}
		}
	}
	weight := w.weight()
	bytes := min(weight+100_000, 900_000) // new sessions weigh much less, meanwhile
	var code proto.ErrCode
	if !w.await(func() bool { // a small create succeeds before all members have said that they have room
		code = try(proto.OpCreate, createOf(ballast, int(bytes)))
		return code == proto.OK
	}, growthBound) {
		w.complain("create %s of %d bytes: %v", ballast, bytes, code)
		return
	}
	m, take := w.leader(), (*room).takeMemory
	if w.plan.seed/2%3 > 0 {
		m = w.inside()[m.id%len(w.inside())] // the one after the leader
	}
	if w.plan.seed%2 == 1 {
		take = (*room).takeDisk
	}
	short := []*member{m} // that lack room
	if w.plan.seed%2 == 1 && !w.plan.modes.reserve {
		short = w.judgeFewDisks(m, try)
	}
	press := func(allowed int64) {
		for _, m := range short {
			take(&m.room, allowed)
		}
	}
	press(weight + bytes/2)
	full := creates(proto.ErrQuotaExceeded)
	code = try(proto.OpDelete, (&proto.PathVersionRequest{Path: ballast, Version: -1}).Append(nil))
	if !full || code != proto.OK || !creates(proto.OK) {
		w.complain("growth must be refused while member %d lacks room (is: %v), until data are deleted (%v)", m.id, full, code)
	}
	press(1)
	full = w.await(func() bool { return m.life.s.Facts().Stats().Growth.Limit == 1 }, growthBound) && creates(proto.ErrQuotaExceeded)
	g.forget()
	session := w.await(func() bool {
		code = try(proto.OpExists, (&proto.PathWatchRequest{Path: growerHome}).Append(nil))
		return code == proto.OK
	}, growthBound)
	if !full || !session {
		w.complain("with no room at member %d growth must be refused (is: %v), and sessions must not (%v)", m.id, full, code)
	}
	for _, m := range short {
		m.room.release()
	}
	if !creates(proto.OK) {
		w.complain("growth is refused %v after member %d has room", growthBound, m.id)
	}
}

// judgeFewDisks checks that data may be added while the disks of a minority of the voters, and of
// all observers, have no room. It returns the fewest members whose disks decide, m if it votes.
func (w *world) judgeFewDisks(m *member, try func(proto.OpCode, []byte) proto.ErrCode) (decide []*member) {
	var voters, few []*member
	for i := range w.members {
		switch other := w.members[(m.id-1+i)%len(w.members)]; other.role {
		case voter:
			voters = append(voters, other)
		case observer:
			few = append(few, other)
		}
	}
	few = append(few, voters[:(len(voters)-1)/2]...)
	for _, m := range few {
		m.room.takeDisk(1)
	}
	time.Sleep(growthBound)
	if code := try(proto.OpCreate, createOf(growerHome+"/few", growerData)); code != proto.OK {
		w.complain("a create is refused because of the disks of %d of %d voters: %v", (len(voters)-1)/2, len(voters), code)
	}
	for _, m := range few {
		m.room.release()
	}
	return voters[:(len(voters)+1)/2]
}
