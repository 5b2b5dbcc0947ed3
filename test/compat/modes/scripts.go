package modes

import (
	_ "embed" // the requests
	"fmt"
	"strconv"
	"strings"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/proto"
)

// localRequests are those of a local session, and readOnlyRequests those at a read-only server, in
// the words of diff/exchange.
var (
	//go:embed local.txt
	localRequests string
	//go:embed readonly.txt
	readOnlyRequests string
)

// localSessions plays on the leader and on a follower.
func (p *player) localSessions() {
	for i, m := range must.Get(p.e.LeaderFirst(p.ctx))[:2] {
		role, other := []string{"leader", "follower"}[i], must.Get(p.e.LeaderFirst(p.ctx))[2]
		say := func(what string, outcome ...any) { p.say(role+": "+what, outcome...) }

		s, how := p.open(m, proto.ConnectRequest{})
		say("open", how, s.do(`sync "/"`), s.do(`exists "/" false`))
		zxid := s.zxid
		again, how := p.open(m, s.claim())
		say("resume on the same server", how, s.do("ping"))
		_, how = p.open(other, s.claim())
		say("resume elsewhere", how)
		wrong := s.claim()
		wrong.Passwd = []byte("0123456789abcdef")
		_, how = p.open(m, wrong)
		say("wrong password", how)
		s, how = p.open(m, again.claim())
		say("close", how, s.do("closeSession"), s.reply())
		_, how = p.open(m, again.claim())
		say("resume a closed session", how)

		s, _ = p.open(m, proto.ConnectRequest{})
		say("a read sees that all this took no zxid", s.do(`exists "/" false`), s.zxid-zxid)
		for words := range strings.Lines(strings.ReplaceAll(localRequests, "ROLE", strconv.Itoa(i))) {
			before := s.zxid
			say(opOf(words), s.do(words), s.zxid-before)
		}
		_, how = p.open(other, s.claim())
		say("resume elsewhere after an ephemeral znode was asked for", how)

		s, _ = p.open(m, proto.ConnectRequest{})
		before := s.zxid
		say("a multi first", s.do(fmt.Sprintf(`multi { create "/x%d" null open 0 ; create2 "/g%[1]d" null open 1 }`, i)), s.zxid != before)
		s, _ = p.open(m, proto.ConnectRequest{})
		say("an ephemeral znode that cannot be created first", s.do(fmt.Sprintf(`create "/p%d" "x" open 1`, i)))
	}
}

// readOnly plays on a follower that loses the others, and finds them again.
func (p *player) readOnly(clients []*script) {
	roles := must.Get(p.e.LeaderFirst(p.ctx))
	left, gone := roles[1], []int{0, 2}
	stage := func() {
		for _, c := range clients {
			p.lines = append(p.lines, c.stage()...)
		}
	}
	stage()
	owner, how := p.open(left, proto.ConnectRequest{})
	p.say("a client that accepts a read-only server", how, owner.do(`create "/ro" "x" open 1`))
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
	p.say("resume", how, s.do("ping"))
	p.say("close", again.do("closeSession"), again.reply())
	s, _ = p.open(left, proto.ConnectRequest{})
	stage()
	for _, i := range gone {
		roles[i].Start()
	}
	p.say("the connection when the quorum is back", s.reply())
	p.e.AwaitServing(p.ctx)
	p.await(left, "isro", "rw")
	_, how = p.open(left, s.claim())
	p.say("its session", how)
	_, how = p.open(roles[0], s.claim())
	p.say("its session elsewhere", how)
	owner, how = p.open(left, owner.claim())
	p.say("the global session", how, owner.do(`exists "/ro" false`))
	stage()
	for _, c := range clients {
		c.end()
	}
}

// requests sends a request of each kind to a read-only server.
func (p *player) requests(s *session) {
	for words := range strings.Lines(readOnlyRequests) {
		before := s.zxid
		p.say(opOf(words), s.do(words), s.zxid == before || before == 0)
	}
}

// opOf returns the name of a request's operation.
func opOf(words string) string { return strings.Fields(words)[0] }
