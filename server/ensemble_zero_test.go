package server_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gozkd/gozkd/internal/memberid"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server"
)

// Servers may be numbered from 0. Whatever clients and operators read has the number 0.
func TestEnsemble_NumbersFromZero(t *testing.T) {
	withZero(t, 3, func(t *testing.T, e *ensemble) {
		const zero = memberid.Zero
		e.onDisk()
		e.each(func(c *server.Config) { c.SuperDigest, c.NoSync = superDigest(), true })
		e.startAll()
		e.settle()
		e.awaitVoters(e.ids()...)

		if got, _, _ := strings.Cut(e.connect(1, time.Minute).config(), "\nversion="); got != strings.Join(e.lines(), "\n") {
			t.Errorf("the members are\n%s", got)
		}
		var seen []proto.SessionID
		for range 3 {
			for number, id := range []int{zero, 1, 2} {
				c := e.connect(id, time.Minute)
				if uint64(c.id)>>56 != uint64(number) || slices.Contains(seen, c.id) {
					t.Errorf("the session %v of server %d; there are %v", c.id, number, seen)
				}
				seen = append(seen, c.id)
			}
		}
		if got := e.word(zero, "conf"); !strings.Contains(got, "\nserverId=0\n") || !strings.Contains(got, "\n"+e.m(zero).line+"\n") {
			t.Errorf("conf:\n%s", got)
		}
		e.handOver(zero)
		e.checkZero("0")
		e.check(zero, 1, "/of-the-leader")
		e.check(2, zero, "/to-the-leader")

		owner := e.connect(zero, time.Minute)
		owner.call(1, proto.OpCreate, create{path: "/e", mode: proto.ModeEphemeral})
		e.m(zero).kill()
		other := e.leader()
		e.checkZero(strconv.Itoa(other))
		owner = owner.move(e, other)
		e.start(zero)
		if owner = owner.move(e, zero); !owner.exists("/e") {
			t.Error("the ephemeral of a session that moved is gone")
		}
		e.awaitVoters(e.ids()...)

		admin := e.admin(1)
		if got, zxid, code := admin.reconfig(change{leaving: "0"}); code != proto.OK || got != text(zxid, e.lines()[1:]...) {
			t.Fatalf("%v\n%s", code, got)
		}
		e.m(zero).stop()
		e.awaitVoters(1, 2)
		joined := e.m(zero).begin(e.lines())
		if got, zxid, code := admin.reconfig(change{joining: e.m(zero).line}); code != proto.OK || got != text(zxid, e.lines()...) {
			t.Fatalf("%v\n%s", code, got)
		}
		if err := joined(); err != nil {
			t.Fatal(err)
		}
		e.awaitVoters(e.ids()...)
		e.handOver(zero)
		e.check(1, zero, "/again")
		if _, after, found := strings.Cut(strings.ReplaceAll(e.said.String(), "m255", ""), "255"); found {
			t.Errorf("a line of the log has the id of server 0: …255%.200s", after)
		}
	})
}

// handOver makes a member the leader, as soon as it is in step: until then it is refused.
func (e *ensemble) handOver(to int) {
	e.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	e.awaits("the new leader", func() bool {
		leader := e.leader()
		if leader == to {
			return true
		}
		got, err := e.m(leader).s.HandOver(ctx, to)
		if err == nil && got != to {
			e.t.Fatalf("%d leads, want %d", got, to)
		}
		return err == nil && e.leader() == to
	})
}

// checkZero checks what mntr of the running members says about the leader, which has a number, and
// about server 0.
func (e *ensemble) checkZero(leader string) {
	e.t.Helper()
	for _, m := range e.members {
		if m.s == nil {
			continue
		}
		mntr := e.monitor(m.id)
		if got := mntr["zk_gozkd_leader_id"]; got != leader {
			e.t.Errorf("member %d says that server %s leads, it is server %s", m.id, got, leader)
		}
		if connected := mntr["zk_gozkd_peer_0_connected"]; m.id != memberid.Zero && e.m(memberid.Zero).s != nil && connected != "1" {
			e.t.Errorf("member %d is connected to server 0: %q", m.id, connected)
		}
		for key := range mntr {
			if strings.Contains(key, fmt.Sprint(memberid.Zero)) {
				e.t.Errorf("member %d has the metric %s", m.id, key)
			}
		}
	}
}
