package server_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/watchdog"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server"
)

// counts are changes of values by name.
type counts map[string]int64

// moved holds the last values on each member, to compare their changes.
type moved struct {
	e      *ensemble
	before map[int]map[string]int64
}

// seldom lists values that only the actions of these tests should change, by a known amount.
var seldom = []string{
	"sessionless_connections_expired", "connection_drop_count", "connection_rejected", "connection_request_count", "connection_revalidate_count",
	"revalidate_count", "cnxn_closed_without_zk_server_running", "stale_sessions_expired", "gozkd_sessions_lost_since_election", "auth_failed_count",
	"request_throttle_wait_count", "request_throttle_queue_time_ms", "digest_mismatches_count", "looking_count", "diff_count", "snap_count",
	"election_time", "unavailable_time", "leader_unavailable_time", "follower_sync_time", "observer_sync_time", "commit_count", "proposal_count",
	"quorum_ack_latency", "proposal_latency", "proposal_ack_creation_latency", "commit_propagation_latency", "propagation_latency",
	"gozkd_requests_resent_total", "snapshottime", "gozkd_checkpoint_duration_seconds", "updatelatency", "fsync_threshold_exceed_count",
	"read_commitproc_time_ms", "pending_syncs", "outstanding_requests", "gozkd_slow_requests_total", "fsynctime",
}

func (e *ensemble) measure(ids ...int) *moved {
	m := &moved{e, make(map[int]map[string]int64)}
	for _, id := range ids {
		m.before[id] = counted(e.m(id).s)
	}
	return m
}

// want compares the changes on a member with the expected ones, and starts again from the present
// values.
func (m *moved) want(id int, what string, want counts) {
	m.e.t.Helper()
	now := counted(m.e.m(id).s)
	for _, name := range seldom {
		if _, ok := now[name]; !ok {
			m.e.t.Fatalf("there is no %s", name)
		}
		got := now[name] - m.before[id][name]
		if w := want[name]; got != w && !(w == some && got > 0) {
			m.e.t.Errorf("%s: member %d: %s moved by %d, want %d", what, id, name, got, w)
		}
	}
	for name := range want {
		if !slices.Contains(seldom, name) {
			m.e.t.Fatalf("%s is not followed", name)
		}
	}
	m.before[id] = now
}

// some is any number above 0.
const some = 1 << 40

// entries returns the changes of a member's counts by n requests that become entries.
func entries(leading bool, n int64) counts {
	if leading {
		return counts{"propagation_latency": n, "commit_count": n, "proposal_count": n, "quorum_ack_latency": n}
	}
	return counts{"propagation_latency": n, "proposal_latency": n, "proposal_ack_creation_latency": n, "commit_propagation_latency": n}
}

// and returns the sums.
func (c counts) and(more counts) counts {
	for name, n := range more {
		c[name] += n
	}
	return c
}

// The values about sessions, the log and leaders change by exactly the number of events.
func TestEnsemble_Measures(t *testing.T) {
	withEnsemble(t, 3, func(t *testing.T, e *ensemble) {
		e.each(func(c *server.Config) { c.OutstandingLimit = 5 })
		e.startAll()
		e.settle()
		time.Sleep(80 * time.Second) // its session expires
		leader, follower, third := e.leader(), e.followers()[0], e.followers()[1]
		all := []int{leader, follower, third}
		m := e.measure(all...)
		// wrote compares after writes of one member's clients, with further changes on that member
		// and on all.
		wrote := func(what string, n int64, by int, there, everywhere counts) {
			t.Helper()
			time.Sleep(2 * time.Second)
			for _, id := range all {
				want := entries(id == leader, n).and(everywhere)
				if id == by {
					want = want.and(counts{"updatelatency": n}).and(there)
				}
				m.want(id, what, want)
			}
		}
		time.Sleep(time.Minute)
		wrote("nothing happens", 0, 0, nil, nil)

		c := e.connect(follower, 10*time.Minute)
		wrote("a session", 1, follower, counts{"connection_request_count": 1}, nil)
		c.call(1, proto.OpCreate, create{path: "/a"})
		wrote("a write", 1, follower, nil, nil)
		c.request(2, proto.OpSetData, setSecret{})
		c.request(3, proto.OpExists, &proto.PathWatchRequest{Path: "/a"})
		c.reply()
		c.reply()
		wrote("a read behind a write", 1, follower, counts{"read_commitproc_time_ms": 1}, nil)
		for i := range int32(20) {
			c.request(4+i, proto.OpSetData, setSecret{})
		}
		for range 20 {
			c.reply()
		}
		wrote("many writes", 20, follower, counts{"request_throttle_wait_count": some, "request_throttle_queue_time_ms": some}, nil)
		idle := e.dial(follower)
		time.Sleep(time.Minute / 2)
		c.ping()
		if idle.recv() != nil {
			t.Error("a client that sent nothing got an answer")
		}
		wrote("a connection without a session", 0, follower, counts{"sessionless_connections_expired": 1}, nil)
		c.call(proto.XidAuth, proto.OpAuth, &proto.AuthRequest{Scheme: "unheard-of"})
		wrote("a failed authentication", 0, follower, counts{"auth_failed_count": 1}, nil)
		back := c.move(e, third) // its connection was closed
		time.Sleep(2 * time.Second)
		m.want(leader, "a session moves", entries(true, 1).and(counts{"revalidate_count": 1}))
		m.want(third, "a session moves", entries(false, 1).and(counts{"updatelatency": 1, "connection_request_count": 1, "connection_revalidate_count": 1}))
		m.want(follower, "a session moves", entries(false, 1))
		if err := back.nc.Close(); err != nil {
			t.Fatal(err)
		}
		wrote("a client goes", 0, third, counts{"connection_drop_count": 1}, nil)
		time.Sleep(40 * time.Second)
		wrote("its session expires", 1, 0, nil, counts{"stale_sessions_expired": 1, "gozkd_sessions_lost_since_election": 1})

		// One member is cut off with a write under way, and returns.
		c = e.connect(follower, 10*time.Minute)
		wrote("another session", 1, follower, counts{"connection_request_count": 1}, nil)
		e.m(follower).isolate(true)
		c.request(1, proto.OpSetData, setSecret{})
		time.Sleep(3 * time.Second)
		m.want(leader, "one is cut off", nil)
		m.want(follower, "one is cut off", counts{"outstanding_requests": 1, "gozkd_requests_resent_total": some})
		time.Sleep(30 * time.Second)
		if e.dial(follower).connectSilently() {
			t.Error("a member without a leader accepted a client")
		}
		m.want(follower, "a client of one that is cut off", counts{"cnxn_closed_without_zk_server_running": 1, "connection_request_count": 1})
		e.m(follower).isolate(false)
		time.Sleep(10 * time.Second)
		e.leader()
		if e.leader() != leader {
			t.Fatal("there is another leader, so this test shows nothing")
		}
		m.want(follower, "it comes back", entries(false, 1).and(counts{
			"updatelatency": 1, "outstanding_requests": -1, "looking_count": 1, "election_time": 1, "unavailable_time": 1,
			"follower_sync_time": 1,
		}))
		m.want(leader, "it comes back", entries(true, 1).and(counts{"diff_count": 1}))
		m.want(third, "it comes back", entries(false, 1))

		// Another member becomes the leader.
		e.m(leader).kill()
		next := e.leader()
		time.Sleep(5 * time.Second)
		for _, id := range e.but(leader) {
			want := counts{"looking_count": 1, "election_time": 1, "unavailable_time": 1, "gozkd_sessions_lost_since_election": -2}
			if id == next {
				m.want(id, "another leader", want.and(counts{"leader_unavailable_time": 1, "diff_count": 1}))
			} else {
				m.want(id, "another leader", want.and(counts{"follower_sync_time": 1}))
			}
		}

		// The state of one member differs.
		e.start(leader)
		time.Sleep(10 * time.Second)
		m.want(next, "the old leader comes back without its state", counts{"snap_count": 1})
		differs := e.but(leader)[0] + e.but(leader)[1] - next
		w := e.connect(next, 10*time.Minute)
		server.Corrupt(e.m(differs).s)
		for range 50 {
			w.call(1, proto.OpSetData, setSecret{})
			time.Sleep(100 * time.Millisecond)
		}
		m.want(next, "one differs", entries(true, 51).and(counts{"updatelatency": 51, "connection_request_count": 1, "digest_mismatches_count": 1}))
	})
}

// connectSilently sends a connect request and reports whether it is answered.
func (r *raw) connectSilently() bool {
	r.send((&proto.ConnectRequest{TimeoutMs: 30_000}).Append(nil))
	return r.recv() != nil
}

// Checkpoints and syncs are counted on the member where they happen, and so is the time that an
// observer needs to follow.
func TestEnsemble_MeasuresDisk(t *testing.T) {
	withEnsemble(t, 3, func(t *testing.T, e *ensemble) {
		e.onDisk()
		e.m(3).line = strings.Replace(e.m(3).line, "participant", "observer", 1)
		e.each(func(c *server.Config) { c.SnapCount = 20 })
		e.startAll()
		e.settle()
		time.Sleep(80 * time.Second)
		leader, follower := e.leader(), e.followers()[0]
		w := e.connect(leader, 10*time.Minute)
		time.Sleep(2 * time.Second)
		all := []int{leader, follower, 3}
		m := e.measure(all...)
		w.call(1, proto.OpCreate, create{path: "/a"})
		for range 99 {
			w.call(1, proto.OpSetData, setSecret{})
		}
		time.Sleep(2 * time.Second)
		for _, id := range all {
			want := entries(id == leader, 100).and(counts{"snapshottime": 5, "gozkd_checkpoint_duration_seconds": 5, "fsynctime": 100})
			if id == leader {
				want["updatelatency"] = 100
			}
			m.want(id, "writes", want)
		}
		e.m(follower).stop() // no quorum: the leader gives up
		time.Sleep(20 * time.Second)
		m.want(3, "no quorum", nil)
		e.start(follower)
		time.Sleep(20 * time.Second)
		m.want(3, "a quorum again", counts{"looking_count": 1, "election_time": 1, "unavailable_time": 1, "observer_sync_time": 1,
			"gozkd_sessions_lost_since_election": -1, "fsynctime": some})
	})
}

// Refused connections and checkpoints are counted on a standalone server.
func TestMonitor_MovesSeldom(t *testing.T) {
	s := start(t, server.Config{Dir: t.TempDir(), MaxClientConns: 1, SnapCount: 5})
	dial := dialer(t, s)
	c := dial()
	c.connect(10_000, 0, nil)
	if dial().recv() != nil {
		t.Error("a connection above the limit got an answer")
	}
	c.call(1, proto.OpCreate, create{path: "/a"})
	for range 20 {
		c.call(1, proto.OpSetData, setSecret{})
	}
	// A checkpoint is written in the background, and one that ends now is counted by one of the two
	// values first.
	late, look := watchdog.After(t, 20*time.Second), time.NewTicker(time.Millisecond)
	defer look.Stop()
	n := counted(s)
	for n["snapshottime"] < 1 || n["snapshottime"] != n["gozkd_checkpoint_duration_seconds"] {
		select {
		case <-look.C:
			n = counted(s)
		case <-late:
			t.Fatalf("%d checkpoints, or %d", n["snapshottime"], n["gozkd_checkpoint_duration_seconds"])
		}
	}
	if n["connection_rejected"] != 1 {
		t.Errorf("%d connections were rejected, want 1", n["connection_rejected"])
	}
}
