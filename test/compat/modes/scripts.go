package main

import (
	"fmt"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/proto"
)

// localSessions plays on the leader and on a follower.
func (p *player) localSessions() {
	for i, m := range p.roles()[:2] {
		role, other := []string{"leader", "follower"}[i], p.roles()[2]
		say := func(what string, outcome ...any) { p.say(role+": "+what, outcome...) }
		path := func(name string) string { return fmt.Sprintf("/%s%d", name, i) }

		s, how := p.open(m, proto.ConnectRequest{})
		say("open", how, s.do(proto.OpSync, sync()), s.do(proto.OpExists, &proto.PathWatchRequest{Path: "/"}))
		zxid := s.zxid
		again, how := p.open(m, s.claim())
		say("resume on the same server", how, s.do(proto.OpPing, nil))
		_, how = p.open(other, s.claim())
		say("resume elsewhere", how)
		wrong := s.claim()
		wrong.Passwd = []byte("0123456789abcdef")
		_, how = p.open(m, wrong)
		say("wrong password", how)
		s, how = p.open(m, again.claim())
		say("close", how, s.do(proto.OpCloseSession, nil), s.reply())
		_, how = p.open(m, again.claim())
		say("resume a closed session", how)

		s, _ = p.open(m, proto.ConnectRequest{})
		say("a read sees that all this took no zxid", s.do(proto.OpExists, &proto.PathWatchRequest{Path: "/"}), s.zxid-zxid)
		steps := []struct {
			op   proto.OpCode
			body record
		}{
			{proto.OpCreate, create{path: path("p")}},
			{proto.OpCreateContainer, create{path: path("c"), mode: proto.ModeContainer, op: proto.OpCreateContainer}},
			{proto.OpCreateTTL, create{path: path("t"), mode: proto.ModePersistentTTL, op: proto.OpCreateTTL, ttl: 100_000}},
			{proto.OpMulti, multi{inMulti(proto.OpCreate, path("m"), 0)}},
			{proto.OpSync, sync()},
			{proto.OpCreate, create{path: path("e"), mode: proto.ModeEphemeral}},
			{proto.OpExists, &proto.PathWatchRequest{Path: path("e")}},
			{proto.OpCreate2, create{path: path("s"), mode: proto.ModeEphemeralSequential, op: proto.OpCreate2}},
			{proto.OpMulti, multi{inMulti(proto.OpCreate, path("n"), 0), inMulti(proto.OpCreate2, path("f"), proto.ModeEphemeral)}},
			{proto.OpCreate, create{path: path("p"), mode: proto.ModeEphemeral}},
		}
		for _, step := range steps {
			before := s.zxid
			say(step.op.String(), s.do(step.op, step.body), s.zxid-before)
		}
		_, how = p.open(other, s.claim())
		say("resume elsewhere after an ephemeral znode was asked for", how)

		s, _ = p.open(m, proto.ConnectRequest{})
		before := s.zxid
		say("a multi first", s.do(proto.OpMulti, multi{inMulti(proto.OpCreate, path("x"), 0), inMulti(proto.OpCreate2, path("g"), proto.ModeEphemeral)}), s.zxid != before)
		s, _ = p.open(m, proto.ConnectRequest{})
		say("an ephemeral znode that cannot be created first", s.do(proto.OpCreate, create{path: path("p"), mode: proto.ModeEphemeral}))
	}
}

func sync() record {
	path := "/"
	return &proto.PathRequest{Path: &path}
}

// readOnly plays on a follower that loses the others, and finds them again.
func (p *player) readOnly(clients []*script) {
	roles := p.roles()
	left, gone := roles[1], []int{0, 2}
	stage := func() {
		for _, c := range clients {
			p.lines = append(p.lines, c.stage()...)
		}
	}
	stage()
	owner, how := p.open(left, proto.ConnectRequest{})
	p.say("a client that accepts a read-only server", how, owner.do(proto.OpCreate, create{path: "/ro", mode: proto.ModeEphemeral}))
	for _, i := range gone {
		must.Do(roles[i].Kill())
	}
	p.say("its connection", owner.reply())
	p.await(left, "isro", "ro")
	_, how = p.openAs(left, proto.ConnectRequest{HasReadOnly: true})
	p.say("a client that wants to write", how)
	_, how = p.openAs(left, proto.ConnectRequest{})
	p.say("a client that says nothing", how)
	_, how = p.open(left, owner.claim())
	p.say("a global session", how)
	_, how = p.open(left, proto.ConnectRequest{LastZxidSeen: owner.zxid + 1000})
	p.say("a client that has seen more", how)
	s, how := p.open(left, proto.ConnectRequest{LastZxidSeen: owner.zxid})
	p.say("open", how)
	p.requests(s)
	again, how := p.open(left, s.claim())
	p.say("resume", how, s.do(proto.OpPing, nil))
	p.say("close", again.do(proto.OpCloseSession, nil), again.reply())
	s, _ = p.open(left, proto.ConnectRequest{})
	stage()
	for _, i := range gone {
		must.Do(roles[i].Start())
	}
	p.say("the connection when the quorum is back", s.reply())
	must.Do(p.e.AwaitServing(p.ctx))
	p.await(left, "isro", "rw")
	_, how = p.open(left, s.claim())
	p.say("its session", how)
	_, how = p.open(roles[0], s.claim())
	p.say("its session elsewhere", how)
	owner, how = p.open(left, owner.claim())
	p.say("the global session", how, owner.do(proto.OpExists, &proto.PathWatchRequest{Path: "/ro"}))
	stage()
	for _, c := range clients {
		c.end()
	}
}

// requests sends a request of each kind to a read-only server.
func (p *player) requests(s *session) {
	path := "/ro"
	pathVersion := &proto.PathVersionRequest{Path: path, Version: -1}
	for _, r := range []struct {
		op   proto.OpCode
		body record
	}{
		{proto.OpGetData, &proto.PathWatchRequest{Path: path, Watch: true}}, {proto.OpExists, &proto.PathWatchRequest{Path: "/none", Watch: true}},
		{proto.OpGetChildren, &proto.PathWatchRequest{Path: "/"}}, {proto.OpGetChildren2, &proto.PathWatchRequest{Path: "/"}},
		{proto.OpGetACL, &proto.PathRequest{Path: &path}}, {proto.OpGetAllChildrenNumber, &proto.PathRequest{Path: &path}},
		{proto.OpGetEphemerals, &proto.PathRequest{Path: &path}}, {proto.OpWhoAmI, nil}, {proto.OpPing, nil},
		{proto.OpAddWatch, &proto.AddWatchRequest{Path: path}}, {proto.OpMultiRead, multi{{Op: proto.OpGetData, Path: path}}},
		{proto.OpCreate, create{path: "/z"}}, {proto.OpCreate, create{path: "/z", mode: proto.ModeEphemeral}},
		{proto.OpCreate2, create{path: "/z", op: proto.OpCreate2}},
		{proto.OpCreateContainer, create{path: "/z", mode: proto.ModeContainer, op: proto.OpCreateContainer}},
		{proto.OpCreateTTL, create{path: "/z", mode: proto.ModePersistentTTL, op: proto.OpCreateTTL, ttl: 1000}},
		{proto.OpSetData, &proto.SetDataRequest{Path: path, Version: -1}}, {proto.OpDelete, pathVersion},
		{proto.OpSetACL, &proto.SetACLRequest{Path: path, ACL: proto.OpenACL(), Version: -1}},
		{proto.OpMulti, multi{}}, {proto.OpMulti, multi{{Op: proto.OpCheck, Path: path, Version: -1}}},
		{proto.OpReconfig, &proto.ReconfigRequest{ConfigID: -1}}, {proto.OpSync, sync()}, {proto.OpDeleteContainer, &proto.PathRequest{Path: &path}},
	} {
		before := s.zxid
		p.say(r.op.String(), s.do(r.op, r.body), s.zxid == before || before == 0)
	}
}
