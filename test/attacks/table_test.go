package main

import (
	"context"
	"encoding/hex"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gozkd/gozkd/proto"
)

// bad is a row that misses every target.
func bad() *row {
	return &row{attack: &attack{name: "words", writes: 1}, server: "gozkd",
		others: others{Samples: 10, P50: time.Second, P99: 2 * time.Second, Max: 3 * time.Second, Disconnected: 4},
		peak:   600e6, sigterm: 5 * time.Second, logRate: 1e6, writeRate: 2, races: 1,
		died: []string{"server 1: panic: x"}, breaches: []string{"a snapshot"}, lasting: []string{"lost"}, notes: []string{"remark"}, failed: "no server"}
}

func TestRow_MissesEachTarget(t *testing.T) {
	want := []string{"not carried out", "p99 of others", "disconnected 4", "600 MB", "SIGTERM", "kB of log", "writes per second", "race detector",
		"died: server 1", "got: a snapshot", "damage: lost"}
	missed := bad().missed(&settings{})
	if len(missed) != len(want) {
		t.Fatalf("%d targets are missed, want %d: %q", len(missed), len(want), missed)
	}
	for i, part := range want {
		if !strings.Contains(missed[i], part) || !strings.HasPrefix(missed[i], "gozkd: words: ") {
			t.Errorf("missed target %d is %q, want one about %q", i, missed[i], part)
		}
	}
	for _, m := range bad().missed(&settings{race: true}) {
		if strings.Contains(m, "p99") || strings.Contains(m, "MB") || strings.Contains(m, "SIGTERM") {
			t.Errorf("with the race detector, slowness is judged: %s", m)
		}
	}
	good := &row{attack: &attack{name: "none"}, others: others{Samples: 1, P99: maxP99}, peak: maxMemory, sigterm: maxSigterm}
	if missed := good.missed(&settings{}); missed != nil {
		t.Errorf("a row that reaches the targets misses %q", missed)
	}
	if silent := (&row{attack: &attack{}}).missed(&settings{}); len(silent) != 1 {
		t.Errorf("a probe without answers misses %q", silent)
	}
}

func TestWritePage_ReplacesOnlyTheTable(t *testing.T) {
	name := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(name, []byte("before\n"+tableBegin+"old\n"+tableEnd+"after\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	text := table([]*row{bad()})
	if err := writePage(name, text); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if want := "before\n" + tableBegin + text + tableEnd + "after\n"; string(page) != want {
		t.Errorf("the page is\n%s\nwant\n%s", page, want)
	}
	const want = "| `words` | 2,000 words cons, hardly read, beside 200 sessions | 2000 ms, 600 MB, SIGTERM 5.0 s; remark; **others disconnected: 4**; **died: 1**; **damaged after the restart**; log 1000 kB/s; 2 writes/s; **not carried out**; **a snapshot** |\n"
	if !strings.Contains(text, want) || !strings.HasPrefix(text, "| attack | the stranger sends | gozkd |\n|---|---|---|\n") {
		t.Errorf("the table is\n%s\na line must be\n%s", text, want)
	}
	if err := os.WriteFile(name, []byte("no marks"), 0o600); err != nil {
		t.Fatal(err)
	}
	if writePage(name, text) == nil {
		t.Error("a page without marks was written")
	}
}

func TestProbe_CountsUnansweredRequests(t *testing.T) {
	p := &probe{began: time.Now().Add(-time.Hour), version: 7, disconnected: 1, samples: []time.Duration{time.Millisecond, time.Millisecond}}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, due := range []time.Time{time.Now().Add(-time.Minute), p.began.Add(-time.Hour)} { // the second is from before the attack
		for _, err := range []error{proto.ErrConnectionLoss, proto.ErrSessionExpired} {
			p.measure(ctx, due, func(context.Context) error { return err })
		}
	}
	o := summary([]*probe{p})
	if o.Samples != 4 || o.P50 < time.Minute || o.Max < time.Minute || o.Max > time.Hour || o.Disconnected != 1 || o.Versions[0] != 7 {
		t.Errorf("the summary is %+v", o)
	}
}

func TestProbe_AsksAgainAfterALostConnection(t *testing.T) {
	p, asked := &probe{}, 0
	p.measure(t.Context(), time.Now(), func(context.Context) error {
		if asked++; asked < 3 {
			return proto.ErrConnectionLoss
		}
		return nil
	})
	if asked != 3 || len(p.samples) != 1 {
		t.Errorf("asked %d times, %d samples", asked, len(p.samples))
	}
}

func TestAttacks_HaveNamesAndTexts(t *testing.T) {
	seen := make(map[string]bool)
	for _, a := range allAttacks() {
		if a.name == "" || a.what == "" || a.run == nil || seen[a.name] {
			t.Errorf("attack %q has no name of its own, text or function", a.name)
		}
		seen[a.name] = true
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "quality", "attacks.md"))
	if err != nil {
		t.Fatal(err)
	}
	for name := range seen {
		if !strings.Contains(string(page), "| `"+name+"` |") {
			t.Errorf("docs/quality/attacks.md does not describe the attack %s", name)
		}
	}
	if _, err := attacksNamed("none,nonexistent"); err == nil {
		t.Error("an unknown attack was found")
	}
}

// The examples of docs/reference/formats.md, version 1.
func TestPeerBytes_AreOfTheFormat(t *testing.T) {
	for _, c := range []struct {
		what, want string
		got        []byte
	}{
		{"frame", "02000000010000002d446e8c6162", frame(1, []byte("ab"))},
		{"hello", "676f7a6b644e4554010000000100000001000000000000000200000000000000" + "03000000b1fadcdf616263", hello(helloFrames, 1, 2, []byte("abc"))},
		{"heartbeat", "01" + "0808" + "1002" + "1801", raftMessage(fieldType, msgHeartbeat, fieldTo, 2, fieldFrom, 1)},
	} {
		if got := hex.EncodeToString(c.got); got != c.want {
			t.Errorf("the %s is %s, want %s", c.what, got, c.want)
		}
	}
}

// Every request in words is one.
func TestDrawRequest(t *testing.T) {
	r, drawn := rand.New(rand.NewPCG(1, 1)), make(map[proto.OpCode]bool)
	for range 1000 {
		op, _ := drawRequest(r)
		drawn[op] = true
	}
	if len(drawn) != len(anyRequests) {
		t.Errorf("drawn were requests of %d operations, of %d", len(drawn), len(anyRequests))
	}
}
