package top

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/gozkd/gozkd/internal/probe"
	"github.com/gozkd/gozkd/internal/testkit/exhaustive"
	"github.com/gozkd/gozkd/server/facts"
)

// update rewrites the golden files: go test ./cmd/gozkd/internal/top -run Screen -update. Read them
// before committing.
var update = flag.Bool("update", false, "write testdata/*.txt")

// scene is a sequence of samples and keys for a model.
type scene struct {
	name  string
	fakes func() []*fake
	// happens changes the fakes in a second.
	happens func(second int, fakes []*fake)
	keys    []string
}

func loaded() []*fake {
	leader, a, b := newFake(2, facts.Leader), newFake(1, facts.Follower), newFake(3, facts.Follower)
	leader.lag = map[uint64]int64{1: 0, 3: 4}
	for i, f := range []*fake{leader, a, b} {
		for n := range int64(4) {
			f.clients = append(f.clients, connection(int64(i)*10+n))
		}
	}
	a.hot = facts.HotSpots{Window: 10, Paths: []facts.HotPath{{Path: "/kafka/brokers/ids", Reads: 812.4, Writes: 0.1}, {Path: "/locks/übergabe/\x1b[31mred", Reads: 3}},
		Clients: []facts.HotClient{{Address: "10.1.0.10:40010", Session: "0x10000010000000a", Reads: 800, Writes: 12}}}
	b.hot = facts.HotSpots{Window: 10, Paths: []facts.HotPath{{Path: "/kafka/brokers/ids", Reads: 100}, {Path: "/" + strings.Repeat("long/", 40) + "path", Writes: 17}}, Clients: []facts.HotClient{{Session: "0x30000010000000b", Reads: 1}}}
	return []*fake{a, leader, b}
}

func busy(second int, fakes []*fake) {
	for i, f := range fakes {
		f.outstanding = int64(second % (i + 2))
		f.work(int64(1000 * (i + 1) * (4 + second%5)))
	}
}

func scenes() []scene {
	kill := func(second int, fakes []*fake) {
		busy(second, fakes)
		if second == 15 {
			fakes[0].received, fakes[2].received = 100, 100 // srst
			fakes[1].err = &probe.Error{Address: fakes[1].Address, Word: "srvr", Err: errors.New("connection refused")}
		}
		if second >= 18 {
			fakes[2].mode, fakes[2].zxid = facts.Leader, 0x200000001
		}
	}
	return []scene{
		{name: "asking", fakes: loaded},
		{name: "clients", fakes: loaded, happens: busy},
		{name: "hot", fakes: loaded, happens: busy, keys: []string{"2"}},
		{name: "trends", fakes: loaded, happens: busy, keys: []string{"3"}},
		{name: "sorted", fakes: loaded, happens: busy, keys: []string{"s", "s", "s", "r"}},
		{name: "scrolled", fakes: loaded, happens: busy, keys: []string{"s", "down", "down"}},
		{name: "failover", fakes: loaded, happens: kill},
		{name: "no-leader", fakes: loaded, happens: func(second int, fakes []*fake) {
			busy(second, fakes)
			if second >= 10 {
				fakes[1].err = &probe.Error{Address: fakes[1].Address, Word: "srvr", Err: errors.New("no answer within 3s")}
				fakes[0].err = &probe.Error{Address: fakes[0].Address, Word: "srvr", Err: probe.ErrNotServing}
				fakes[2].err = fakes[0].err
			}
		}},
		{name: "zookeeper", fakes: func() []*fake {
			fakes := loaded()
			for _, f := range fakes {
				f.version, f.only = "3.9.5-293c895a8d966a3ecb92872be4a1daf87d725da2", true
			}
			return fakes
		}, happens: busy, keys: []string{"2"}},
		{name: "many", fakes: func() []*fake {
			fakes := loaded()
			for id := uint64(4); id < 30; id++ {
				fakes = append(fakes, newFake(id, facts.Observer))
			}
			for n := range int64(60) {
				fakes[0].clients = append(fakes[0].clients, connection(100+n))
			}
			return fakes
		}, happens: busy},
		{name: "upgrade", fakes: loaded, happens: func(second int, fakes []*fake) {
			busy(second, fakes)
			for i, build := range []string{"0123456789ab", "ba9876543210-dirty"} { // of one release
				f := fakes[i]
				f.version, f.level, f.maxLevel = "3.9.5-gozkd-0.2.0-"+build+"-go1.26.8", 1, 2
			}
		}},
		{name: "help", fakes: loaded, happens: busy, keys: []string{"?"}},
		{name: "paused", fakes: loaded, happens: busy, keys: []string{"p"}},
	}
}

// play runs a scene of 20 seconds and returns the model.
func (s scene) play(th theme, width, height int) *model {
	m := newModel(th, time.Second)
	m.width, m.height = width, height
	fakes := s.fakes()
	if s.happens == nil { // only one member has been asked
		m.observe(Report{Sample: fakes[0].sample(0), Roster: rosterOf(fakes)})
		return m
	}
	for second := range 20 {
		s.happens(second, fakes)
		for _, f := range fakes {
			m.observe(Report{Sample: f.sample(float64(second)), Roster: rosterOf(fakes)})
		}
	}
	for _, k := range s.keys {
		m.key(k)
	}
	return m
}

func TestScreen(t *testing.T) {
	for _, s := range scenes() {
		for _, size := range [][2]int{{80, 24}, {140, 40}} {
			name := filepath.Join("testdata", fmt.Sprintf("%s-%dx%d.txt", s.name, size[0], size[1]))
			var plain strings.Builder
			for line := range strings.Lines(s.play(theme{}, size[0], size[1]).screen()) {
				plain.WriteString(strings.TrimRight(line, " \n") + "\n")
			}
			if *update {
				if err := os.WriteFile(name, []byte(plain.String()), 0o644); err != nil {
					t.Fatal(err)
				}
				continue
			}
			want, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if plain.String() != string(want) {
				t.Errorf("%s is now\n%s", name, plain.String())
			}
		}
	}
}

// At any size, the screen has as many lines as the terminal, none of them too wide, with and
// without colors.
func TestScreen_Fits(t *testing.T) {
	for _, s := range scenes() {
		for _, th := range []theme{{}, colors(func(string) string { return "" })} {
			m := s.play(th, 80, 24)
			for _, width := range exhaustive.Or([]int{1, 40, 79, 80, 120, 300}, []int{1, 7, 20, 40, 79, 80, 81, 99, 100, 119, 120, 200, 300}) {
				for _, height := range exhaustive.Or([]int{1, 3, 10, 24, 60}, []int{1, 2, 3, 5, 10, 24, 33, 60}) {
					m.width, m.height = width, height
					lines := strings.Split(m.screen(), "\n")
					if len(lines) != height {
						t.Fatalf("%s at %dx%d has %d lines", s.name, width, height, len(lines))
					}
					for _, l := range lines {
						if w := ansi.StringWidth(l); w > width {
							t.Fatalf("%s at %dx%d has a line of %d:\n%q", s.name, width, height, w, l)
						}
					}
				}
			}
		}
	}
}

// Names from servers and clients cannot move the cursor.
func TestScreen_Clean(t *testing.T) {
	for _, s := range scenes() {
		if text := s.play(theme{}, 140, 40).screen(); strings.ContainsRune(text, '\x1b') {
			t.Errorf("%s has an escape", s.name)
		}
	}
}

func TestKeys(t *testing.T) {
	refreshed := 0
	m := newModel(theme{}, time.Second)
	m.refresh = func() { refreshed++ }
	fakes := loaded()
	for second := range 3 {
		busy(second, fakes)
		for _, f := range fakes {
			m.observe(Report{Sample: f.sample(float64(second)), Roster: rosterOf(fakes)})
		}
	}
	press := func(keys ...string) (quits bool) {
		for _, k := range keys {
			quits = m.key(k)
		}
		return quits
	}
	press("tab", "tab")
	if m.panel != trendsPanel {
		t.Errorf("panel %d", m.panel)
	}
	press("tab", "shift+tab", "shift+tab", "1")
	if m.panel != clientsPanel {
		t.Errorf("panel %d", m.panel)
	}
	press("S", "s", ">", "<", "r")
	if m.sortBy != 0 || !m.reversed {
		t.Errorf("sorted by %d, %t", m.sortBy, m.reversed)
	}
	press("up", "down", "down")
	if m.scroll != 2 {
		t.Errorf("scrolled to %d", m.scroll)
	}
	press("end", "pgdown")
	if m.scroll != m.panelLength()-1 {
		t.Errorf("scrolled to %d of %d", m.scroll, m.panelLength())
	}
	press("pgup", "home")
	if m.scroll != 0 {
		t.Errorf("scrolled to %d", m.scroll)
	}
	press("space")
	if refreshed != 1 {
		t.Errorf("refreshed %d times", refreshed)
	}

	// While paused the screen does not change; the next rate covers the whole pause.
	press("p")
	still := m.screen()
	fakes[0].work(3000)
	m.observe(Report{Sample: fakes[0].sample(5), Roster: rosterOf(fakes)})
	if m.screen() != still {
		t.Error("the screen moves while it is paused")
	}
	press("p")
	fakes[0].work(3000)
	m.observe(Report{Sample: fakes[0].sample(6), Roster: rosterOf(fakes)})
	if got := m.ensemble.members[0].rates.Requests; got != 1500 {
		t.Errorf("%v requests/s over a pause", got)
	}

	if press("?") || !m.help || press("x") || m.help {
		t.Error("a key leaves the help, and does nothing else")
	}
	for _, k := range []string{"q", "ctrl+c"} {
		if !press(k) || !press("?", k) {
			t.Errorf("%s does not quit", k)
		}
	}
}

// How long a member has been down is told once it is known: not at the first look.
func TestCauseText(t *testing.T) {
	m := &member{hasSample: true, last: Sample{Err: errors.New("refused")}}
	e := &ensemble{members: []*member{m}}
	for after, want := range map[time.Duration]string{0: "refused", time.Second - 1: "refused", 90 * time.Second: "refused (for 90s)"} {
		m.since, e.now = e.now, e.now.Add(after)
		if got := causeText(e, m); got != want {
			t.Errorf("after %v: %q, want %q", after, got, want)
		}
	}
}
