package server

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/consensus"
	"github.com/gozkd/gozkd/internal/serverlist"
	"github.com/gozkd/gozkd/internal/testkit/logbuf"
	"github.com/gozkd/gozkd/internal/testkit/vfstest"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server/internal/members"
)

func TestSocketLimit(t *testing.T) {
	for _, c := range []struct {
		open, limit int64
		want        int
	}{{15, 1024, 753}, {15, 1 << 20, 1<<20 - 15 - 2048}, {15, 100, 53}, {60, 64, 8}, {9, 1 << 40, 1<<31 - 1}} {
		if got := socketLimit(c.open, c.limit); got != c.want {
			t.Errorf("%d of %d descriptors are open: %d connections, want %d", c.open, c.limit, got, c.want)
		}
	}
}

// By default the bound on all connections follows from the limit of file descriptors.
func TestMaxConns_Default(t *testing.T) {
	_, limit, ok := fileDescriptors()
	if !ok {
		t.Skip("the system does not tell its limit")
	}
	for configured, want := range map[int]func(got int) bool{
		0:  func(got int) bool { return got > 0 && int64(got) < limit },
		-1: func(got int) bool { return got == -1 },
		7:  func(got int) bool { return got == 7 },
	} {
		s, err := New(Config{MaxConns: configured})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := s.ports.maxConns(); !want(got) {
			t.Errorf("MaxConns %d with %d file descriptors: %d connections", configured, limit, got)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	s, err := New(Config{InProcess: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.ports.openClients(t.Context()); err != nil || s.ports.maxConns() != 0 {
		t.Errorf("in process: %v, %d connections", err, s.ports.maxConns())
	}
}

// Whatever the limit of file descriptors is, clients and the callers on the port for members leave
// some for the log and checkpoints.
func TestSocketLimit_PeersFitIn(t *testing.T) {
	for limit := int64(128); limit < 1<<21; limit *= 2 {
		const open = 20
		clients, peers := int64(socketLimit(open, limit)), min(reserved(limit)/2, 1024)
		if left := limit - open - clients - peers; left < 16 || peers < 16 {
			t.Errorf("of %d descriptors %d are for clients, %d for members, and %d are left", limit, clients, peers, left)
		}
	}
	if _, limit, ok := fileDescriptors(); ok && int64(peerConns()) != reserved(limit)/2 {
		t.Errorf("%d connections of members with %d descriptors", peerConns(), limit)
	}
}

// A server that a reconfig has moved is where the reconfig says. One that a reconfig has removed is
// where its own configuration says, also after a restart.
func TestPeerListenAddresses(t *testing.T) {
	set := func(lines string) serverlist.Set {
		set, _, err := serverlist.ParseConfig(lines)
		if err != nil {
			t.Fatal(err)
		}
		return set
	}
	const others = "server.2=h2:2888:3888;2181\nserver.3=h3:2888:3888;2181"
	configured, disk := set("server.1=h1:2888:3888;2181\n"+others), vfstest.NewMem()
	for i, c := range []struct{ state, wanted, named string }{
		{"", "0.0.0.0:2888", "h1:2888"},
		{"server.1=h1:2888:3888;2181\n" + others, "0.0.0.0:2888", "h1:2888"},
		{"server.1=h1:2889:3888;2181\n" + others, "0.0.0.0:2889", "h1:2889"},
		{others, "0.0.0.0:2888", "h1:2888"},
	} {
		for _, when := range []string{"first", "after a restart"} {
			addresses, err := members.OpenAddresses(disk, ".", configured)
			if err == nil && c.state != "" {
				state := set(c.state)
				err = addresses.Update(state, proto.Zxid(i), state)
			}
			if err != nil {
				t.Fatal(err)
			}
			p := serverPorts{shared: &shared{cfg: &Config{MemberID: 1, PeerListen: "0.0.0.0:2888"}, members: configured}, addresses: addresses}
			if at, wanted := p.peerListenAddresses(); at != "0.0.0.0:2888" || wanted != c.wanted || p.reachedAt() != c.named {
				t.Errorf("members %q, %s: configured %s, wanted %s, named %s", strings.Fields(c.state), when, at, wanted, p.reachedAt())
			}
		}
	}
}

// Only an answer with the nonce of a question, which went to the address of a member, names
// members: whoever passes for a member cannot send this server elsewhere. What is malformed changes
// nothing.
func TestReceived_MembersNobodyAskedFor(t *testing.T) {
	const lines = "server.1=h1:2888:3888;2181\nserver.2=h2:2888:3888;2181"
	s, err := New(Config{MemberID: 1, Members: strings.Split(lines, "\n")})
	if err != nil {
		t.Fatal(err)
	}
	nonce := string(s.leader.nonce[:])
	for _, c := range []struct {
		answer string
		want   proto.Zxid
	}{
		{"", 0}, {nonce, 0}, {nonce[:7], 0}, {lines + "\nversion=9", 0}, {"another!" + lines + "\nversion=9", 0},
		{nonce + "nonsense\nversion=9", 0}, {nonce + lines + "\nversion=7", 7}, {nonce + lines + "\nversion=6", 6},
	} {
		s.leader.received(2, append([]byte{reportMembers}, c.answer...))
		if got := s.ports.search.Known(2); got != c.want || s.ports.search.Known(3) != 0 {
			t.Errorf("after the answer %q the members are of version %v, want %v", c.answer, got, c.want)
		}
	}
	for _, question := range []string{"", nonce, nonce[:3], nonce + "\x80"} {
		if err := s.leader.tellMembers(2, []byte(question)); err == nil {
			t.Errorf("the question %q is taken", question)
		}
	}
	if s.leader.nonce == ([8]byte{}) {
		t.Error("there is no nonce")
	}
}

// A server that does not serve yet takes of all messages only the questions and answers about
// members: all servers may be waiting for one that tells them where the others are.
func TestReceived_BeforeServing(t *testing.T) {
	var said logbuf.Buffer
	s, err := New(Config{Logger: hclog.New(&hclog.LoggerOptions{Output: &said})})
	if err != nil {
		t.Fatal(err)
	}
	for kind := byte(reportHeard); kind <= reportMembers; kind++ {
		before := said.Count("malformed report")
		s.leader.received(2, slices.Concat([]byte{kind}, s.leader.nonce[:], []byte{0x80}))
		if took := said.Count("malformed report") > before; took != (kind >= reportSeek) {
			t.Errorf("a message of kind %d is taken: %v", kind, took)
		}
	}
	// No answer is sent, for which there is no node here, if the members are not newer.
	if err := s.leader.tellMembers(2, slices.Concat(s.leader.nonce[:], []byte{0})); err != nil {
		t.Error(err)
	}
}

// The answer to a report counts if it is the leader's: the time in it means nothing to another one.
func TestReceived_AnswerOfAnother(t *testing.T) {
	s, err := New(Config{InProcess: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	st := s.node.Status()
	for from, want := range map[uint64]uint64{st.Leader + 1: 0, st.Leader: 77} {
		s.leader.contact.Answered(termOf(st), 0, true, time.Now())
		s.leader.received(from, []byte{reportTaken, 77})
		if _, ms := s.leader.contact.NextReport(termOf(st), time.Now()); ms != want {
			t.Errorf("after an answer of %d to member %d the leader's time is %d, want %d", from, st.Leader, ms, want)
		}
	}
}

// A server reports at once to a leader whose term it knows, and that is another server. It has no
// node here to send a report with.
func TestGreet_Nobody(t *testing.T) {
	s, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	for _, st := range []consensus.Status{
		{Since: began}, {Leader: 2, Since: began}, {Leader: 1, Leading: true, Current: true, Since: began},
	} {
		if s.leader.greet(st); !s.leader.greeted.IsZero() {
			t.Errorf("%+v: a report is sent", st)
		}
	}
}
