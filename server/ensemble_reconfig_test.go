package server_test

import (
	"crypto/sha1"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
	"github.com/gozkd/gozkd/server"
)

const configPath = "/zookeeper/config"

// withSuper runs f with an ensemble whose super user is super:pw.
func withSuper(t *testing.T, n int, f func(t *testing.T, e *ensemble)) {
	t.Helper()
	withEnsemble(t, n, func(t *testing.T, e *ensemble) {
		e.each(func(c *server.Config) { c.SuperDigest = superDigest() })
		f(t, e)
	})
}

// superDigest is the super user super:pw in the configuration.
func superDigest() string { return digestOf("super:pw") }

// digestOf returns the digest id of a user with that password.
func digestOf(userPassword string) string {
	user, _, _ := strings.Cut(userPassword, ":")
	sum := sha1.Sum([]byte(userPassword))
	return user + ":" + base64.StdEncoding.EncodeToString(sum[:])
}

// admin connects as the super user.
func (e *ensemble) admin(id int) *raw {
	e.t.Helper()
	r := e.connect(id, time.Hour)
	if h, _ := r.call(proto.XidAuth, proto.OpAuth, &proto.AuthRequest{Scheme: "digest", Auth: []byte("super:pw")}); h.Err != proto.OK {
		e.t.Fatal(h.Err)
	}
	return r
}

// change is the content of a reconfig. Empty lists are null.
type change struct {
	joining, leaving, members string
	version                   int64 // 0: any
}

func (c change) Append(b []byte) []byte {
	list := func(s string) *string {
		if s == "" {
			return nil
		}
		return &s
	}
	r := &proto.ReconfigRequest{Joining: list(c.joining), Leaving: list(c.leaving), NewMembers: list(c.members), ConfigID: c.version}
	if c.version == 0 {
		r.ConfigID = -1
	}
	return r.Append(b)
}

// reconfig requests a change and returns the new members' lines.
func (r *raw) reconfig(c change) (text string, zxid proto.Zxid, code proto.ErrCode) {
	r.t.Helper()
	h, d := r.call(7, proto.OpReconfig, c)
	if h.Err != proto.OK {
		return "", h.Zxid, h.Err
	}
	var resp proto.DataResponse
	resp.Decode(d)
	if d.Err() != nil {
		r.t.Fatal(d.Err())
	}
	if resp.Stat.Version != -1 || resp.Stat.Mzxid != h.Zxid {
		r.t.Errorf("reply with zxid %v, stat %+v", h.Zxid, resp.Stat)
	}
	return string(resp.Data), h.Zxid, proto.OK
}

func (r *raw) mustReconfig(c change) proto.Zxid {
	r.t.Helper()
	_, zxid, code := r.reconfig(c)
	if code != proto.OK {
		r.t.Fatalf("%+v: %v", c, code)
	}
	return zxid
}

// config reads the members.
func (r *raw) config() string {
	r.t.Helper()
	h, d := r.call(8, proto.OpGetData, &proto.PathWatchRequest{Path: configPath})
	if h.Err != proto.OK {
		r.t.Fatal(h.Err)
	}
	return string(data(d))
}

// settle waits until the state has the first members of the ensemble.
func (e *ensemble) settle() {
	e.t.Helper()
	r := e.connect(e.leader(), time.Minute)
	for range 100 {
		if r.config() != "" {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	e.t.Fatal("no members in the state")
}

// text returns the expected content of configPath.
func text(version proto.Zxid, lines ...string) string {
	return strings.Join(lines, "\n") + fmt.Sprintf("\nversion=%x", uint64(version))
}

func TestReconfig_GrowShrinkAndChangeRoles(t *testing.T) {
	withSuper(t, 5, func(t *testing.T, e *ensemble) {
		first := e.members[:3]
		var lines []string
		for _, m := range e.members {
			lines = append(lines, m.line)
		}
		e.startWith(lines[:3], first...)
		e.settle()
		if e.leader() != 1 { // see core.elect
			t.Fatalf("member %d leads", e.leader())
		}
		admin, watcher := e.admin(2), e.connect(3, time.Hour)
		pipes := e.pipes(2, 3)
		step := func(c change, want ...string) {
			t.Helper()
			if h, _ := watcher.call(1, proto.OpGetData, &proto.PathWatchRequest{Path: configPath, Watch: true}); h.Err != proto.OK {
				t.Fatal(h.Err)
			}
			got, zxid, code := admin.reconfig(c)
			if code != proto.OK || got != text(zxid, want...) {
				t.Fatalf("%+v: %v\n%s\nwant\n%s", c, code, got, text(zxid, want...))
			}
			if h, ev := watcher.event(); ev.Type != proto.EventDataChanged || ev.Path != configPath || h.Zxid != zxid {
				t.Errorf("event %+v with zxid %v, want %v", ev, h.Zxid, zxid)
			}
			if got := watcher.config(); got != text(zxid, want...) {
				t.Errorf("%+v: the other member has\n%s", c, got)
			}
		}
		observer := strings.Replace(lines[3], "participant", "observer", 1)

		// Joiners run before they are added: they wait, and serve when they are members.
		fourth := e.m(4).begin(append(lines[:3:3], observer))
		step(change{joining: observer}, lines[0], lines[1], lines[2], observer)
		if err := fourth(); err != nil {
			t.Fatal(err)
		}
		e.awaitVoters(1, 2, 3)
		e.check(4, 1, "/through-the-observer")
		e.check(1, 4, "/to-the-observer")
		step(change{joining: lines[3]}, lines[:4]...) // and now it votes
		e.awaitVoters(1, 2, 3, 4)
		step(change{joining: observer}, lines[0], lines[1], lines[2], observer)
		e.awaitVoters(1, 2, 3)
		step(change{leaving: "4"}, lines[:3]...)

		fifth := e.m(5).begin(append(lines[:3:3], lines[4]))
		step(change{joining: lines[4], leaving: "1"}, lines[1], lines[2], lines[4]) // the leader leaves
		if err := fifth(); err != nil {
			t.Fatal(err)
		}
		e.check(1, 2, "/by-a-client-of-the-removed") // it serves until it is stopped, and says so
		for id, outside := range map[int]bool{1: true, 2: false, 5: false} {
			if why := e.m(id).s.Facts().Stats().Outside; strings.Contains(why, "not a member of the ensemble, or no longer") != outside {
				t.Errorf("server %d: %q", id, why)
			}
		}
		e.check(3, 1, "/for-a-client-of-the-removed")
		e.m(1).stop()
		e.m(4).stop()
		e.awaitVoters(2, 3, 5)
		e.check(5, 2, "/x")
		first1 := e.m(1).begin(lines[:3])
		step(change{members: lines[0] + "," + lines[1] + "," + lines[2]}, lines[:3]...)
		if err := first1(); err != nil {
			t.Fatal(err)
		}
		e.m(5).stop()
		e.awaitVoters(1, 2, 3)
		ends(t, pipes, 500*time.Millisecond)
	})
}

func TestReconfig_Refused(t *testing.T) {
	withSuper(t, 6, func(t *testing.T, e *ensemble) {
		lines := e.lines()
		absent := strings.Join(lines[3:], ",") // with three of six there would be no quorum
		e.startWith(lines[:3], e.members[:3]...)
		e.settle()
		admin, other := e.admin(e.followers()[0]), e.admin(e.followers()[1])
		before := admin.config()
		refused := func(r *raw, c change, want proto.ErrCode) {
			t.Helper()
			if _, _, code := r.reconfig(c); code != want {
				t.Errorf("%+v: %v, want %v", c, code, want)
			}
			if got := r.config(); got != before {
				t.Errorf("%+v changed the members:\n%s", c, got)
			}
		}
		refused(admin, change{leaving: "3", version: 7}, proto.ErrBadVersion)
		refused(admin, change{joining: "nonsense"}, proto.ErrBadArguments)
		refused(admin, change{leaving: "x"}, proto.ErrMarshallingError)
		refused(admin, change{leaving: "1,2"}, proto.ErrBadArguments)
		refused(e.connect(1, time.Minute), change{leaving: "3"}, proto.ErrNoAuth)
		tooLarge := strings.Replace(lines[3], "server.4", "server.255", 1) // an id that ZooKeeper takes
		refused(e.connect(1, time.Minute), change{joining: tooLarge}, proto.ErrNoAuth)
		refused(admin, change{joining: tooLarge}, proto.ErrBadArguments)

		// The joiners do not run. While the ensemble waits for them, no other change is accepted.
		admin.request(7, proto.OpReconfig, change{joining: absent})
		time.Sleep(100 * time.Millisecond)
		refused(other, change{leaving: "3"}, proto.ErrReconfigInProgress)
		start := time.Now()
		if h, _ := admin.reply(); h.Err != proto.ErrNewConfigNoQuorum {
			t.Errorf("joiners that do not run: %v after %v", h.Err, time.Since(start))
		}
		if got := admin.config(); got != before {
			t.Errorf("the members are\n%s", got)
		}
		e.awaitVoters(1, 2, 3)
		e.check(1, 3, "/x")

		// If the leader changes, the next one decides the request.
		leader := e.leader()
		admin = e.admin(e.followers()[0])
		admin.request(7, proto.OpReconfig, change{joining: absent})
		time.Sleep(100 * time.Millisecond)
		e.m(leader).kill()
		if h, _ := admin.reply(); h.Err != proto.ErrNewConfigNoQuorum {
			t.Errorf("joiners that do not run, under a new leader: %v", h.Err)
		}
		e.startWith(lines[:3], e.m(leader))
		e.awaitVoters(1, 2, 3)
		admin.mustReconfig(change{joining: lines[3]}) // three of four are a quorum
		served := e.m(4).begin(lines[:4])
		if err := served(); err != nil {
			t.Fatal(err)
		}
		e.awaitVoters(1, 2, 3, 4)
	})
}

// With standaloneEnabled=false an ensemble may have a single voter, and grow out of it.
func TestReconfig_OneVoter(t *testing.T) {
	withSuper(t, 3, func(t *testing.T, e *ensemble) {
		e.each(func(c *server.Config) { c.SuperDigest, c.OneVoter = superDigest(), true })
		lines := e.lines()
		e.startAll()
		e.settle()
		admin := e.admin(1)
		admin.mustReconfig(change{leaving: "2,3"})
		e.m(2).stop()
		e.m(3).stop()
		e.awaitVoters(1)
		e.check(1, 1, "/alone")
		observer := strings.Replace(lines[1], "participant", "observer", 1)
		second := e.m(2).begin(append(lines[:1:1], observer))
		admin.mustReconfig(change{joining: observer})
		if err := second(); err != nil {
			t.Fatal(err)
		}
		e.awaitVoters(1)
		e.check(2, 1, "/through-the-observer")
		admin.mustReconfig(change{joining: lines[1]})
		e.awaitVoters(1, 2)
		e.check(1, 2, "/both")
	})
}

// A member returns at another address, and a removed member returns without data.
func TestReconfig_MemberMoves(t *testing.T) {
	withSuper(t, 3, func(t *testing.T, e *ensemble) {
		e.onDisk()
		e.startAll()
		e.settle()
		admin := e.admin(1)
		m := e.m(3)
		m.stop()
		m.peerAddress = "m3:3999"
		moved := strings.Replace(m.line, ":2888:", ":3999:", 1)
		m.line = moved
		admin.mustReconfig(change{joining: moved}) // the others are a quorum
		e.start(3)
		e.awaitVoters(1, 2, 3)
		e.check(3, 1, "/x")
		for _, id := range []int{1, 2} { // they know where it is, though their own configuration does not
			e.m(id).stop()
			old := append([]string(nil), e.lines()...)
			old[2] = strings.Replace(moved, ":3999:", ":2888:", 1)
			e.startWith(old, e.m(id))
			e.awaitVoters(1, 2, 3)
		}
		admin = e.admin(1)
		admin.mustReconfig(change{leaving: "3"})
		m.kill()
		m.dir = t.TempDir()
		served := m.begin(e.lines())
		admin.mustReconfig(change{joining: moved})
		if err := served(); err != nil {
			t.Fatal(err)
		}
		e.awaitVoters(1, 2, 3)
		e.check(3, 2, "/y")
	})
}

// An observer serves and does not vote: without one of two voters there is no quorum.
func TestEnsemble_Observer(t *testing.T) {
	withEnsemble(t, 3, func(t *testing.T, e *ensemble) {
		e.onDisk()
		e.m(3).line = strings.Replace(e.m(3).line, "participant", "observer", 1)
		e.startAll()
		e.awaitVoters(1, 2)
		e.check(3, 1, "/a")
		e.check(2, 3, "/b")
		pipes := e.pipes(3)
		leader := e.leader()
		c := e.connect(3, time.Hour)
		e.m(leader).stop()
		time.Sleep(3 * time.Second)
		if server.LeaderOf(e.m(3).s) != 0 {
			t.Error("there is a leader")
		}
		e.start(leader)
		e.leader()
		c.ping()
		ends(t, pipes, 5*time.Second)
		time.Sleep(10 * time.Second)
		owner := e.connect(3, 5*time.Second) // its sessions live and expire as those of other members
		owner.call(1, proto.OpCreate, create{path: "/e", mode: proto.ModeEphemeral})
		for range 3 {
			time.Sleep(4 * time.Second)
			owner.ping()
		}
		if lived := owner.closedIn(time.Minute); lived < 5*time.Second || lived > 7*time.Second {
			t.Errorf("the session lived for %v", lived)
		}
	})
}

// insist requests a reconfig from one member after the other until it is done.
func (e *ensemble) insist(c change) {
	for try := range 300 {
		if e.attempt(1+try%3, c) == proto.OK {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	e.t.Errorf("no member does %+v", c)
}

// attempt requests a reconfig from a member. If no reply comes, the code is that of a lost
// connection.
func (e *ensemble) attempt(id int, c change) proto.ErrCode {
	nc, err := e.dialFrom("admin", id)
	if err != nil {
		return proto.ErrConnectionLoss
	}
	defer func() { _ = nc.Close() }()
	b := frameOf((&proto.ConnectRequest{TimeoutMs: 60_000, HasReadOnly: true}).Append(nil))
	b = append(b, frame(proto.XidAuth, proto.OpAuth, &proto.AuthRequest{Scheme: "digest", Auth: []byte("super:pw")})...)
	b = append(b, frame(1, proto.OpReconfig, c)...)
	if _, err := nc.Write(b); err != nil {
		return proto.ErrConnectionLoss
	}
	r := &raw{t: e.t, nc: nc}
	var h proto.ReplyHeader
	for range 3 { // the last is the reply to the reconfig
		b := r.tryRecv()
		if b == nil {
			return proto.ErrConnectionLoss
		}
		d := jute.NewDecoder(b)
		h.Decode(&d)
	}
	return h.Err
}
