package top

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozkd/gozkd/internal/probe"
)

// world answers words with recorded answers of servers, after a delay.
type world struct {
	t       *testing.T
	thought time.Duration
	mu      sync.Mutex
	answers map[string]string // by address, a space and the word; a missing word is not in the whitelist; an address without srvr refuses connections
	asked   []string
}

func newWorld(t *testing.T) *world {
	return &world{t: t, thought: time.Second, answers: make(map[string]string)}
}

// recorded gives an address the recorded answers of a server.
func (w *world) recorded(address, server string, list ...string) {
	w.t.Helper()
	for _, word := range list {
		text, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "internal", "probe", "testdata", server+"."+word))
		if err != nil {
			w.t.Fatal(err)
		}
		w.says(address, word, string(text))
	}
}

func (w *world) says(address, word, answer string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answers[address+" "+word] = answer
}

func (w *world) ask(ctx context.Context, address, word string) (string, error) {
	select {
	case <-time.After(w.thought):
	case <-ctx.Done():
		return "", &probe.Error{Address: address, Word: word, Err: ctx.Err()}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked = append(w.asked, address+" "+word)
	if answer, ok := w.answers[address+" "+word]; ok {
		return answer, nil
	}
	err := probe.ErrNotAllowed
	if _, up := w.answers[address+" srvr"]; !up {
		err = errors.New("connection refused")
	}
	return "", &probe.Error{Address: address, Word: word, Err: err}
}

// times returns how often an address was asked a word.
func (w *world) times(address, word string) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, a := range w.asked {
		if a == address+" "+word {
			n++
		}
	}
	return n
}

func TestPoller_Recorded(t *testing.T) {
	for _, server := range []string{"3.8.0-leader", "3.9.5-follower", "gozkd-leader"} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.recorded("s:1", server, "srvr", "mntr", "cons", "conf")
			p := &poller{address: "s:1", ask: w.ask}
			s, settings := p.sample(t.Context())
			if s.Err != nil || s.MonitorErr != nil || s.ClientsErr != nil || s.State.Znodes != 2137 || len(s.Monitor) < 40 || s.Asked != 1 {
				t.Errorf("%s: %+v", server, s)
			}
			if len(s.Clients) != 2 { // the third connection is that of the word
				t.Errorf("%s: clients %+v", server, s.Clients)
			}
			if settings == nil || len(settings.Members) != 3 || settings.ServerID == 0 {
				t.Errorf("%s: settings %+v", server, settings)
			}
			asksHot := server == "gozkd-leader" // ZooKeeper would log a warning
			if (w.times("s:1", "hotp") > 0) != asksHot || s.HotErr == nil {
				t.Errorf("%s: hotp was asked %d times, %v", server, w.times("s:1", "hotp"), s.HotErr)
			}
		})
	}
}

// A refused word is not asked in each round, but again after some rounds, because the whitelist may
// have changed.
func TestPoller_Denied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.recorded("s:1", "gozkd-leader", "srvr")
		discovered := 0
		p := &poller{address: "s:1", ask: w.ask, discover: func(context.Context, string) (probe.Settings, error) {
			if discovered++; discovered == 1 {
				return probe.Settings{}, nil // a new ensemble reports no members yet
			}
			return settingsOf("1", three), nil
		}}
		for range 2 * retryRounds {
			if s, _ := p.sample(t.Context()); !errors.Is(s.MonitorErr, probe.ErrNotAllowed) || !errors.Is(s.ClientsErr, probe.ErrNotAllowed) || !errors.Is(s.HotErr, probe.ErrNotAllowed) {
				t.Fatalf("%+v", s)
			}
		}
		for _, word := range []string{"mntr", "cons", "conf", "hotp"} {
			if n := w.times("s:1", word); n != 2 {
				t.Errorf("%s was asked %d times", word, n)
			}
		}
		w.recorded("s:1", "gozkd-leader", "mntr")
		for range retryRounds {
			p.sample(t.Context())
		}
		if s, _ := p.sample(t.Context()); s.MonitorErr != nil {
			t.Errorf("mntr is allowed now, but %v", s.MonitorErr)
		}
		if discovered != 2 {
			t.Errorf("%d sessions to discover the others: each is a write", discovered)
		}
	})
}

// A standalone server has no members to discover.
func TestPoller_Standalone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.recorded("s:1", "3.9.5-standalone", "srvr")
		p := &poller{address: "s:1", ask: w.ask}
		if s, settings := p.sample(t.Context()); s.Err != nil || settings != nil || w.times("s:1", "conf") != 0 {
			t.Errorf("%+v, %+v", s, settings)
		}
	})
}

func TestPoller_Down(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		p := &poller{address: "s:1", ask: w.ask}
		s, _ := p.sample(t.Context())
		if s.Err == nil || probe.Cause(s.Err) != "connection refused" || s.Asked != 0 || len(w.asked) != 1 {
			t.Errorf("%+v", s)
		}
		w.says("s:1", "srvr", "HTTP/1.1 400 Bad Request\r\n")
		if s, _ := p.sample(t.Context()); s.Err == nil || !strings.Contains(s.Err.Error(), "not a ZooKeeper server") {
			t.Errorf("%+v", s)
		}
	})
}

// The other members are discovered from the first one and asked independently: one that never
// answers does not delay the others.
func TestWatcher(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.recorded("127.0.0.1:2281", "gozkd-leader", "srvr", "mntr", "cons", "conf")
		follower, err := w.ask(t.Context(), "127.0.0.1:2281", "srvr")
		if err != nil {
			t.Fatal(err)
		}
		w.says("127.0.0.1:2282", "srvr", strings.Replace(follower, "leader", "follower", 1))
		hang := func(ctx context.Context, address, word string) (string, error) {
			if address == "127.0.0.1:2283" {
				<-ctx.Done()
				return "", ctx.Err()
			}
			return w.ask(ctx, address, word)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		watch := &watcher{roster: newRoster([]string{"127.0.0.1:2281"}, nil), interval: 2 * time.Second, ask: hang,
			discover: func(context.Context, string) (probe.Settings, error) { return probe.Settings{}, errors.New("no") }}
		count := make(map[string]int)
		var roster []Entry
		watch.run(ctx, func(r Report) {
			count[r.Sample.Address]++
			roster = r.Roster
		})
		want := []Entry{{"127.0.0.1:2281", 1}, {"127.0.0.1:2282", 2}, {"127.0.0.1:2283", 3}}
		if !slices.Equal(roster, want) {
			t.Errorf("roster %v", roster)
		}
		if count["127.0.0.1:2281"] < 8 || count["127.0.0.1:2282"] < 8 || count["127.0.0.1:2283"] != 0 {
			t.Errorf("samples: %v", count)
		}
	})
}

// A member that leaves the ensemble is not asked any more.
func TestWatcher_MemberLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.recorded("h1:1", "gozkd-leader", "srvr")
		conf := func(ids ...int) string {
			text := "serverId=1\nclientPort=1\n"
			for _, id := range ids {
				text += fmt.Sprintf("server.%d=h%d:2:3;1\n", id, id)
			}
			return text
		}
		w.says("h1:1", "conf", conf(1, 2))
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		time.AfterFunc(time.Minute, func() { w.says("h1:1", "conf", conf(1)) })
		var left atomic.Int64
		time.AfterFunc(4*time.Minute, func() { left.Store(int64(w.times("h2:1", "srvr"))) })
		watch := &watcher{roster: newRoster([]string{"h1:1"}, nil), interval: time.Second, ask: w.ask}
		watch.run(ctx, func(Report) {})
		if n := w.times("h2:1", "srvr"); n == 0 || int64(n) != left.Load() {
			t.Errorf("asked %d times, %d of them while it was there", n, left.Load())
		}
	})
}

func TestWatcher_Hurry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.recorded("s:1", "3.9.5-standalone", "srvr")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		hurry := make(chan struct{}, 1)
		watch := &watcher{roster: newRoster([]string{"s:1"}, nil), interval: time.Hour, ask: w.ask, hurry: hurry}
		start, reports := time.Now(), 0
		watch.run(ctx, func(Report) {
			if reports++; reports == 3 {
				cancel()
			}
			hurry <- struct{}{}
		})
		if took := time.Since(start); took > time.Minute {
			t.Errorf("three rounds took %v", took)
		}
	})
}
