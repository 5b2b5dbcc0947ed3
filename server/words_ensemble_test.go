package server_test

import (
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server"
)

// withObserver runs f with three voters and an observer, number 4, that serve and have data
// directories.
func withObserver(t *testing.T, f func(t *testing.T, e *ensemble)) {
	t.Helper()
	withEnsemble(t, 3, func(t *testing.T, e *ensemble) {
		observer := e.newMember(4)
		observer.line = strings.Replace(observer.line, "participant", "observer", 1)
		e.members = append(e.members, observer)
		e.onDisk()
		e.startAll()
		f(t, e)
	})
}

// word sends a word to a member and returns the answer.
func (e *ensemble) word(id int, word string) string {
	e.t.Helper()
	r := e.dial(id)
	if _, err := io.WriteString(r.nc, word); err != nil {
		e.t.Fatal(err)
	}
	answer, err := io.ReadAll(r.nc)
	if err != nil {
		e.t.Fatalf("%s: %v after %q", word, err, answer)
	}
	return string(answer)
}

// monitor returns a member's mntr as a map.
func (e *ensemble) monitor(id int) map[string]string {
	e.t.Helper()
	m := make(map[string]string)
	for line := range strings.Lines(e.word(id, "mntr")) {
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if _, twice := m[key]; twice {
			e.t.Errorf("%s is there twice", key)
		}
		m[key] = value
	}
	return m
}

// awaits waits for a condition, with the bubble's time.
func (e *ensemble) awaits(what string, condition func() bool) {
	e.t.Helper()
	if !e.becomes(condition) {
		e.t.Fatalf("not in a minute: %s", what)
	}
}

// settled waits until the ensemble has its members in /zookeeper/config and the leader has all the
// others in step.
func (e *ensemble) settled() (leader int) {
	e.t.Helper()
	leader = e.leader()
	e.awaits("all in step", func() bool {
		m := e.monitor(leader)
		return strings.HasSuffix(e.word(leader, "conf"), "\nversion=100000002") && m["zk_synced_followers"] == "2" &&
			m["zk_synced_observers"] == "1" && m["zk_synced_non_voting_followers"] == "0"
	})
	return leader
}

// The keys of mntr and their values, role by role. The keys without gozkd_ are those that ZooKeeper
// 3.9.5 has on a member and not on a standalone server, as far as they have a meaning here
// (docs/reference/monitoring.md), with the values that it gave in the same situation.
func TestWords_MemberMonitor(t *testing.T) {
	alone := monitor(t, start(t, server.Config{Words: []string{"mntr"}}).ConnectString())
	withObserver(t, func(t *testing.T, e *ensemble) {
		leader := e.settled()
		client := e.connect(leader, time.Hour)
		if h, _ := client.call(1, proto.OpCreate, create{path: "/a"}); h.Err != proto.OK {
			t.Fatal(h)
		}
		for _, m := range e.members { // until all have applied it
			if h, _ := e.connect(m.id, time.Hour).call(1, proto.OpSync, &proto.PathRequest{Path: new(string)}); h.Err != proto.OK {
				t.Fatal(h)
			}
		}
		e.awaits("no lag at the next tick", func() bool {
			m := e.monitor(leader)
			for key, lag := range m {
				if strings.HasSuffix(key, "_lag_entries") && lag != "0" {
					return false
				}
			}
			return true
		})
		for _, m := range e.members {
			mode, state := "follower", "following - broadcast"
			switch m.id {
			case leader:
				mode, state = "leader", "leading - broadcast"
			case 4:
				mode, state = "observer", "observing - broadcast"
			}
			want := map[string]string{
				"zk_quorum_size": "3", "zk_peer_state": state, "zk_pending_syncs": "0",
				"zk_gozkd_leader_id": strconv.Itoa(leader), "zk_gozkd_epoch": "1", "zk_gozkd_quorum_reachable": "1", "zk_gozkd_voters_connected": "3",
				"zk_gozkd_term": `\d+`, "zk_gozkd_applied_index": `\d+`, "zk_gozkd_requests_resent_total": "0", "zk_gozkd_peer_messages_refused_total": "0",
			}
			if mode == "follower" {
				want["zk_synced_observers"] = "0"
			}
			if mode == "observer" {
				want["zk_observer_master_id"] = strconv.Itoa(leader)
			}
			for _, reason := range []string{"malformed", "version", "silent", "unknown_member", "unreachable", "rejected", "crowded"} {
				want["zk_gozkd_peers_refused_"+reason+"_total"] = `\d+`
			}
			for _, reason := range []string{"impostor", "no_secret", "wrong_secret", "plain", "tls", "certificate"} {
				want["zk_gozkd_peers_refused_"+reason+"_total"] = "0"
			}
			for _, other := range e.members {
				peer := fmt.Sprintf("zk_gozkd_peer_%d_", other.id)
				if other != m {
					want[peer+"connected"], want[peer+"tls"], want[peer+"incoming_tls"] = "1", "0", "0"
				}
				if other != m && m.id == leader {
					want[peer+"lag_entries"], want[peer+"in_step"] = "0", "1"
				}
			}
			if m.id == leader {
				maps.Copy(want, map[string]string{
					"zk_gozkd_peer_4_observing": "1", "zk_leader_uptime": `\d+`, "zk_learners": "3", "zk_followers": "3", "zk_synced_followers": "2", "zk_synced_observers": "1",
					"zk_synced_non_voting_followers": "0", "zk_last_proposal_size": `\d+`, "zk_min_proposal_size": `\d+`, "zk_max_proposal_size": `\d+`,
				})
			}
			got := e.monitor(m.id)
			maps.DeleteFunc(got, func(key, _ string) bool { // what clients have asked for differs
				return strings.HasSuffix(key, "_per_namespace") || strings.HasSuffix(key, "_gozkd_request_duration_seconds")
			})
			if got["zk_server_state"] != mode || got["zk_znode_count"] != "6" {
				t.Errorf("%s: state %q, %s znodes", mode, got["zk_server_state"], got["zk_znode_count"])
			}
			for key := range alone {
				if _, ok := got[key]; !ok {
					t.Errorf("%s: %s is missing", mode, key)
				}
				delete(got, key)
			}
			for key, pattern := range want {
				if !regexp.MustCompile(`\A` + pattern + `\z`).MatchString(got[key]) {
					t.Errorf("%s: %s is %q, want %s", mode, key, got[key], pattern)
				}
				delete(got, key)
			}
			if len(got) > 0 {
				t.Errorf("%s: also has %v", mode, got)
			}
		}
	})
}

func TestWords_MemberState(t *testing.T) {
	withObserver(t, func(t *testing.T, e *ensemble) {
		leader := e.settled()
		for _, m := range e.members {
			mode := "follower"
			switch m.id {
			case leader:
				mode = "leader"
			case 4:
				mode = "observer"
			}
			tail := `Zxid: 0x100000002\nMode: ` + mode + `\nNode count: 5\n`
			if mode == "leader" {
				tail += `Proposal sizes last/min/max: \d+/\d+/\d+\n`
			}
			for _, word := range []string{"srvr", "stat"} {
				if got := e.word(m.id, word); !regexp.MustCompile(tail + `\z`).MatchString(got) {
					t.Errorf("%s of the %s:\n%s", word, mode, got)
				}
			}
		}
		e.word(leader, "srst")
		if got := e.word(leader, "srvr"); !strings.HasSuffix(got, "\nProposal sizes last/min/max: -1/-1/-1\n") {
			t.Errorf("after srst:\n%s", got)
		}
	})
}

func TestWords_MemberSettings(t *testing.T) {
	withObserver(t, func(t *testing.T, e *ensemble) {
		e.settled()
		lines := strings.Join(e.lines(), "\n")
		for id, peerType := range map[int]string{1: "0", 4: "1"} {
			want := "\nserverId=" + strconv.Itoa(id) + "\ninitLimit=10\nsyncLimit=5\nelectionAlg=3\nelectionPort=3888\nquorumPort=2888\npeerType=" +
				peerType + "\nmembership: \n" + lines + "\nversion=100000002"
			if got := e.word(id, "conf"); !strings.HasSuffix(got, want) {
				t.Errorf("conf of member %d:\n%s\nwant the end\n%s", id, got, want)
			}
		}
	})
}

// Only the leader knows when sessions expire; the others list all sessions with their timeouts.
func TestWords_MemberDump(t *testing.T) {
	withObserver(t, func(t *testing.T, e *ensemble) {
		leader := e.settled()
		ids := []proto.SessionID{e.attach(1, 4*time.Second), e.attach(4, 6*time.Second)}
		slices.Sort(ids)
		want := fmt.Sprintf("SessionTracker dump:\nGlobal Sessions(2):\n%v\t4000ms\n%v\t6000ms\nephemeral nodes dump:\nSessions with Ephemerals (0):\n", ids[0], ids[1])
		for _, m := range e.members {
			if m.id == leader {
				continue
			}
			e.awaits(fmt.Sprintf("dump of member %d to begin with\n%s", m.id, want), func() bool {
				return strings.HasPrefix(e.word(m.id, "dump"), want)
			})
		}
		got := e.word(leader, "dump")
		if !regexp.MustCompile(`\ASessionTracker dump:\nSession Sets \(\d\)/\(2\):\n[12] expire at `).MatchString(got) {
			t.Errorf("dump of the leader:\n%s", got)
		}
	})
}

// attach creates a session and returns its id.
func (e *ensemble) attach(id int, timeout time.Duration) proto.SessionID {
	e.t.Helper()
	return proto.SessionID(e.dial(id).connect(int32(timeout.Milliseconds()), 0, nil).SessionID)
}

// Without a quorum for syncLimit ticks, the words of voters and observers answer that the server
// does not serve, as in ZooKeeper.
func TestWords_MemberCutOff(t *testing.T) {
	withObserver(t, func(t *testing.T, e *ensemble) {
		e.settled()
		const refusal = "This ZooKeeper instance is not currently serving requests"
		e.m(1).kill()
		e.m(2).kill()
		for _, id := range []int{3, 4} {
			e.awaits("cut off", func() bool { return e.word(id, "conf") == refusal+"\n" })
			for word, want := range map[string]string{
				"ruok": "imok", "isro": "null", "hash": refusal, "mntr": refusal + "\n", "srvr": refusal + "\n", "stat": refusal + "\n", "conf": refusal + "\n",
				"dump": refusal + "\n", "cons": refusal + "\n", "wchs": refusal + "\n", "gtmk": "306",
			} {
				if got := e.word(id, word); got != want {
					t.Errorf("%s of member %d, cut off: %q", word, id, got)
				}
			}
		}
	})
}

// A leader reports members that are down, and its knowledge about them.
func TestWords_MemberDown(t *testing.T) {
	withObserver(t, func(t *testing.T, e *ensemble) {
		leader := e.settled()
		down := leader%3 + 1
		peer := fmt.Sprintf("zk_gozkd_peer_%d_", down)
		e.m(down).kill()
		client := e.connect(leader, time.Hour)
		for i := range 3 {
			if h, _ := client.call(int32(i), proto.OpCreate, create{path: fmt.Sprintf("/%d", i)}); h.Err != proto.OK {
				t.Fatal(h)
			}
		}
		e.awaits("a member counted as down", func() bool {
			m := e.monitor(leader)
			return m["zk_learners"] == "2" && m["zk_synced_followers"] == "1" && m["zk_gozkd_voters_connected"] == "2" &&
				m[peer+"connected"] == "0" && m[peer+"in_step"] == "0" && m[peer+"lag_entries"] == "4" && m["zk_gozkd_quorum_reachable"] == "1"
		})
	})
}

// A member that loses quorum keeps its connections for a while, but accepts no client: srvr, which
// probes use, says so at once, and mntr still answers.
func TestWords_WithoutQuorum(t *testing.T) {
	withEnsemble(t, 3, func(t *testing.T, e *ensemble) {
		e.startAll()
		lead := e.leader()
		e.awaits("the members are stored", func() bool { return server.MembersKnown(e.m(lead).s) })
		for _, id := range e.followers() {
			e.m(id).kill()
		}
		s := e.m(lead).s
		e.awaits("the leader is none any more", func() bool { return !s.Status().Serving })
		if err := s.NotServing(); err != nil {
			t.Errorf("connections are not kept: %v", err)
		}
		for word, want := range map[string]string{
			"srvr": "This ZooKeeper instance is not currently serving requests\n", "stat": "This ZooKeeper instance is not currently serving requests\n",
			"isro": "null", "ruok": "imok", "mntr": "zk_version\t",
		} {
			if got := e.word(lead, word); !strings.HasPrefix(got, want) {
				t.Errorf("%s: %q", word, got)
			}
		}
	})
}
