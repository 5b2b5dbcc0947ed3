package server_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/gozkd/gozkd/server"
)

// Each transition of an ensemble is logged once, however long a state lasts.
func TestTransitions_OncePerChange(t *testing.T) {
	withObserver(t, func(t *testing.T, e *ensemble) {
		leader := e.settled()
		said := make(map[string]int) // times, at the last look
		expect := func(when string, lines map[string]int) {
			t.Helper()
			for line, more := range lines {
				if n := e.said.Count(line) - said[line]; n != more {
					t.Errorf("%s: %q is said %d times, want %d", when, line, n, more)
				}
			}
			for line := range lines {
				said[line] = e.said.Count(line)
			}
		}
		expect("start", map[string]int{
			": joining the ensemble: ": 4, ": role: mode=leader ": 1, ": role: mode=follower ": 2, ": role: mode=observer ": 1,
			": a server does not answer: ": 0,
		})

		e.m(leader).kill()
		next := e.leader()
		time.Sleep(30 * time.Second)
		expect("leader killed", map[string]int{
			": the leader is gone or silent: there is a new election: ": 3, ": role: mode=leader ": 1, ": role: mode=follower ": 1,
			": role: mode=observer ": 1, " epoch=0x2 ": 3, ": a server does not answer: ": 1, ": not serving clients yet": 0,
		})

		e.start(leader)
		time.Sleep(30 * time.Second)
		expect("back", map[string]int{": a server is in step: ": 1, ": role: mode=follower ": 1, ": a server does not answer: ": 0})

		other := 6 - leader - next
		e.m(other).kill()
		e.m(leader).kill()
		time.Sleep(30 * time.Second)
		expect("no quorum", map[string]int{
			": quorum lost: too few voters answer, so this server leads no longer: ": 1, ": no leader for syncLimit ticks: ": 2,
		})

		said[": a server does not answer: "] = e.said.Count(": a server does not answer: ") // depends on when they were looked at
		e.start(other)
		time.Sleep(30 * time.Second)
		expect("quorum again", map[string]int{": serving clients again: ": 2, ": role: mode=leader ": 1, ": a server does not answer: ": 1})
	})
}

// A member that returns without its data is logged on both sides, once.
func TestTransitions_WithoutData(t *testing.T) {
	withEnsemble(t, 3, func(t *testing.T, e *ensemble) {
		e.onDisk()
		e.startAll()
		member := e.followers()[0]
		e.m(member).kill()
		e.m(member).ending.Wait()
		if err := os.RemoveAll(e.m(member).dir); err != nil {
			t.Fatal(err)
		}
		before := e.said.Count(": no data yet: ")
		e.start(member)
		time.Sleep(time.Minute)
		for line, want := range map[string]int{
			": a voter comes without data, new or lost: ": 1, ": let in by the ensemble: ": 1, ": no data yet: ": before + 1,
			": sending a checkpoint: ": 1, ": receiving a checkpoint: ": 1, ": installed a checkpoint: ": 1,
		} {
			if n := e.said.Count(line); n != want {
				t.Errorf("%q is said %d times, want %d", line, n, want)
			}
		}
	})
}

// A member that waits for others at the start logs the reason, less and less often.
func TestTransitions_Waiting(t *testing.T) {
	withEnsemble(t, 3, func(t *testing.T, e *ensemble) {
		served := e.m(1).begin(e.lines())
		time.Sleep(36 * time.Second) // after 5, 15 and 35
		if n := e.said.Count(": not serving clients yet: no data here"); n != 3 {
			t.Errorf("said %d times", n)
		}
		e.start(2, 3)
		if err := served(); err != nil {
			t.Fatal(err)
		}
	})
}

// A member without data that the others do not find at the address of its own line says what is
// wrong, whether it can prove who it is or not.
func TestTransitions_FormerAddress(t *testing.T) {
	t.Run("secret", func(t *testing.T) {
		formerAddress(t, []byte("known to the members only"), "waits for the others to connect to it. If the others run, they may have another address of this server")
	})
	t.Run("nothing", func(t *testing.T) { formerAddress(t, nil, "they may have another address of this server") })
}

func formerAddress(t *testing.T, secret []byte, says string) {
	withEnsemble(t, 3, func(t *testing.T, e *ensemble) {
		e.each(func(c *server.Config) { c.PeerSecret = secret })
		former := e.lines()
		former[2] = strings.Replace(former[2], "m3:", "m9:", 1)
		var served []func() error
		for id := 1; id <= 2; id++ {
			served = append(served, e.m(id).begin(former))
		}
		for _, wait := range served {
			if err := wait(); err != nil {
				t.Fatal(err)
			}
		}
		e.m(3).begin(e.lines())
		time.Sleep(16 * time.Second) // it says so after 5 and 15
		if n := e.said.Count(says); n != 2 {
			t.Errorf("said %d times\n%s", n, e.said.String())
		}
	})
}

// Two of three members lose their data. Each server says that the quorum is gone for good, who has
// the data and who has lost it, and advises nobody to found an empty ensemble: the member with the
// data once if it kept running, and all of them when they start.
func TestTransitions_QuorumGone(t *testing.T) {
	withEnsemble(t, 3, func(t *testing.T, e *ensemble) {
		e.onDisk()
		e.startAll()
		e.check(1, 2, "/precious")
		survivor := e.followers()[0]
		e.each(joinOnly)
		lost := e.but(survivor)
		for _, id := range lost {
			e.m(id).stop()
			e.m(id).dir = e.t.TempDir()
		}
		before := e.said.Count("gone for good")
		for _, id := range lost {
			e.m(id).begin(e.lines())
		}
		time.Sleep(90 * time.Second)
		gone := func(who string, id int, want int) {
			t.Helper()
			told := 0
			for line := range strings.Lines(e.said.String()) {
				if strings.Contains(line, fmt.Sprintf(" m%d: ", id)) && strings.Contains(line, "gone for good") &&
					strings.Contains(line, fmt.Sprintf("with_data=[%d] without_data=[%d, %d]", survivor, lost[0], lost[1])) {
					told++
				}
			}
			if told < want || want == 1 && told != 1 {
				t.Errorf("%s, member %d, says it %d times, want %d\n%s", who, id, told, want, e.said.String())
			}
		}
		if before != 0 {
			t.Error("said before anything was lost")
		}
		gone("the one with the data, which runs", survivor, 1)
		for _, id := range lost {
			gone("one without data", id, 2)
		}
		e.m(survivor).stop()
		e.m(survivor).begin(e.lines())
		time.Sleep(40 * time.Second)
		gone("the one with the data, restarted", survivor, 3)
		for _, advice := range []string{"gozkd init", "reconfig"} {
			if n := e.said.Count(advice); n > 0 {
				t.Errorf("%s is advised %d times", advice, n)
			}
		}
	})
}

// What a server without data advises depends on what it knows of the others.
func TestTransitions_AdviceWithoutData(t *testing.T) {
	for name, c := range map[string]struct {
		joinOnly, reconfig bool
		data               bool // member 1 has data and does not lead
		reloaded           bool // reconfig is set by a reload
		says, saysNo       string
	}{
		"new, may found":                            {false, false, false, false, "to form a new ensemble", "reconfig"},
		"new, may found, reconfig":                  {false, true, false, false, "add it with reconfig", "restart them one by one"},
		"may only join":                             {true, false, false, false, "only if no voter has ever had data, run gozkd init", "reconfig"},
		"others have data":                          {false, false, true, false, "restart them one by one", "reconfig"},
		"may only join, others have data, reconfig": {true, true, true, false, "add it with reconfig", "gozkd init"},
		"new, reconfig by a reload":                 {false, true, false, true, "add it with reconfig", "restart them one by one"},
		"new, no reconfig since a reload":           {false, false, false, true, "restart them one by one", "reconfig"},
	} {
		t.Run(name, func(t *testing.T) {
			withEnsemble(t, 5, func(t *testing.T, e *ensemble) {
				e.onDisk()
				if c.data {
					e.startAll()
					for id := 1; id <= 5; id++ {
						e.m(id).stop()
					}
					e.m(1).begin(e.lines())
					e.m(5).dir = e.t.TempDir()
				}
				e.m(5).adapt = func(cfg *server.Config) { cfg.JoinOnly, cfg.ReconfigEnabled = c.joinOnly, c.reconfig != c.reloaded }
				e.m(5).begin(e.lines())
				if c.reloaded {
					time.Sleep(time.Second)
					if restart, err := e.m(5).s.Reload(server.ReloadedWith(e.m(5).s, func(cfg *server.Config) { cfg.ReconfigEnabled = c.reconfig })); err != nil || restart != nil {
						t.Fatal(restart, err)
					}
				}
				time.Sleep(10 * time.Second)
				told := false
				for line := range strings.Lines(e.said.String()) {
					if strings.Contains(line, "not serving clients yet: no data here") {
						told = told || strings.Contains(line, c.says)
						if strings.Contains(line, c.saysNo) {
							t.Errorf("%s is advised: %s", c.saysNo, line)
						}
					}
				}
				if !told {
					t.Errorf("%q is not said", c.says)
				}
			})
		})
	}
}

// A member that came without data and was let in has the data: when it falls silent with another
// one, the quorum is not gone for good.
func TestTransitions_LetInIsNotLost(t *testing.T) {
	withEnsemble(t, 3, func(t *testing.T, e *ensemble) {
		e.onDisk()
		e.startAll()
		e.check(1, 2, "/precious")
		emptied, survivor := e.followers()[0], e.followers()[1]
		e.m(emptied).stop()
		e.m(emptied).dir = e.t.TempDir()
		e.start(emptied)
		e.awaitVoters(1, 2, 3)
		e.m(e.leader()).kill()
		e.awaits("another leader", func() bool { return e.leader() != 0 })
		e.m(emptied).stop()
		time.Sleep(time.Minute)
		e.m(survivor).stop()
		e.m(survivor).begin(e.lines())
		time.Sleep(time.Minute)
		if n := e.said.Count("gone for good"); n > 0 {
			t.Errorf("said %d times", n)
		}
		if n := e.said.Count("no leader, which needs a majority of the voters"); n == 0 {
			t.Error("the reason is not said")
		}
	})
}
