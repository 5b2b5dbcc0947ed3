package backup

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/archive"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/archive/store/storetest"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/cli"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/replica"
	"github.com/gozkd/gozkd/consensus"
	"github.com/gozkd/gozkd/internal/history"
	"github.com/gozkd/gozkd/internal/testkit/exhaustive"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server"
)

// If the store fails for longer than the members keep the log, there is a gap (A4): the archive
// shows it, no moment in it is made up, and all moments before and after it restore.
func TestArchive_GapIsShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShippingWith(t, 1, 1, server.Config{ArchiveBytes: 200 << 10})
		ctx, cancel := context.WithCancel(t.Context())
		s.pause = 40 // ms: 100 entries per second, of some 200 bytes
		wait := s.write(ctx)
		time.Sleep(2 * shipInterval) // until the first base is there
		s.watch(5 * time.Second)
		time.Sleep(shipInterval + time.Second) // so all these are archived
		s.memory.Set(storetest.Faults{Down: true})
		time.Sleep(time.Second)
		inGap := time.Now().Add(4 * time.Second)
		time.Sleep(45 * time.Second)
		s.memory.Set(storetest.Faults{})
		time.Sleep(10 * time.Second)
		s.watch(5 * time.Second)
		cancel()
		wait()
		s.end()
		if s.gaps != 1 {
			t.Errorf("%d gaps were counted", s.gaps)
		}
		a := s.open()
		if spans := a.Spans(); len(spans) != 2 || spans[0].Last >= spans[1].First {
			t.Fatalf("spans %+v", spans)
		}
		s.compare(a, 0)
		page, err := s.history().Changes(t.Context(), history.Query{Path: "/n1", Limit: 1e6})
		gaps := slices.DeleteFunc(slices.Clone(page.Changes), func(c history.Change) bool { return c.Kind != history.Gap })
		if err != nil || page.Next != 0 || len(gaps) != 1 || int64(gaps[0].Zxid) != a.Spans()[1].FirstZxid {
			t.Errorf("the changes of a znode: gaps %+v, next %v, %v", gaps, page.Next, err)
		}
		if r, _, err := verify(t.Context(), s.memory.Client(), ""); err != nil || !r.Sound || len(r.Gaps) != 1 {
			t.Errorf("a gap that the servers know of: %v %+v", err, r)
		}
		_, err = restoreMoment(t.Context(), a, history.Moment{Time: inGap})
		if !errors.Is(err, history.ErrNotCovered) || !strings.Contains(err.Error(), "it has a gap from ") {
			t.Errorf("a moment in the gap: %v", err)
		}
		_, err = restoreMoment(t.Context(), a, history.Moment{Time: time.Unix(1, 0)})
		if !errors.Is(err, history.ErrNotCovered) || !strings.Contains(err.Error(), "it begins at ") ||
			strings.Count(err.Error(), "does not have this moment") != 1 {
			t.Errorf("a moment before: %v", err)
		}
		_, err = restoreMoment(t.Context(), a, history.Moment{Zxid: 0x7f00000000})
		if !errors.Is(err, history.ErrNotCovered) {
			t.Errorf("a zxid of the future: %v", err)
		}

		// Without a base after the gap, the last moment cannot be restored. The error names the
		// moment before the gap.
		if _, err := restoreMoment(t.Context(), a, history.Moment{}); err != nil {
			t.Errorf("the last moment: %v", err)
		}
		before, err := restoreMoment(t.Context(), a, history.Moment{Time: a.Spans()[0].End})
		if err != nil {
			t.Fatal(err)
		}
		last := a.Spans()[0].Last
		for _, name := range s.memory.Names() {
			if strings.Contains(name, "/"+a.Spans()[1].Base+"/") {
				if err := s.memory.Client().Delete(t.Context(), name); err != nil {
					t.Fatal(err)
				}
			}
		}
		if r, _, err := verify(t.Context(), s.memory.Client(), ""); err != nil || r.Sound {
			t.Errorf("the last moments cannot be restored: %v %+v", err, r)
		}
		_, err = restoreMoment(t.Context(), s.open(), history.Moment{})
		want := fmt.Sprintf("--at %v takes the state before the gap", before.tree.LastZxid())
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("a gap after entry %d", last)) || !strings.Contains(err.Error(), want) {
			t.Errorf("the last moment after a gap: %v, want %s", err, want)
		}
	})
}

// Small objects are merged (A6), and old ones deleted: what is left restores every moment of the
// retention.
func TestArchive_MergesAndForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShippingWith(t, 3, 1, server.Config{ArchiveBytes: 64 << 20, Tick: 10 * time.Second})
		s.kill(1)
		s.config.Interval, s.config.BaseInterval, s.config.Retention = 10*time.Second, 30*time.Minute, time.Hour
		s.start(1)
		s.pause = 20_000
		ctx, cancel := context.WithCancel(t.Context())
		wait := s.write(ctx)
		steps := exhaustive.Or(14, 180)
		var kept, recent []int64
		for i := range steps {
			time.Sleep(10 * time.Minute)
			zxid := s.sample()
			recent = append(recent, zxid)
			s.restoreBeside(recent[max(0, i-4)])
			if i >= steps-5 {
				kept = append(kept, zxid)
			}
			if i%7 == 3 { // a store that repeats requests after their objects were deleted
				s.memory.Set(storetest.Faults{LoseReply: 0.2, Repeat: 0.2, Fail: 0.1, MaxDelay: 5 * time.Second})
			} else {
				s.memory.Set(storetest.Faults{})
			}
		}
		cancel()
		wait()
		s.end()
		if n, most := len(s.memory.Names()), 200; n > most {
			t.Errorf("%d objects, want at most %d", n, most)
		}
		a := s.open()
		if spans := a.Spans(); len(spans) != 1 || time.Since(spans[0].Begin) > 2*time.Hour {
			for _, span := range spans {
				t.Errorf("%d to %d, %v to %v", span.First, span.Last, span.Begin, span.End)
			}
		}
		s.compare(a, kept[0])
	})
}

// A moment includes what was written up to then, at that very time too, and nothing later.
func TestArchive_ExactMoments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShipping(t, 6, 1)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		s.write(ctx)()
		s.end()
		a := s.open()
		span := a.Spans()[0]
		type state struct {
			at   time.Time
			zxid proto.Zxid
		}
		r := &replica.Replica{}
		if _, err := a.ReadBase(t.Context(), span, r); err != nil {
			t.Fatal(err)
		}
		states := []state{{span.Begin, r.Tree.LastZxid()}}
		_, err := a.Replay(t.Context(), span, r, func(e consensus.LogEntry) bool {
			states = append(states, state{e.Time, r.Tree.LastZxid()})
			return false
		}, time.Time{})
		if err != nil || len(states) < 20 {
			t.Fatalf("%d states, %v", len(states), err)
		}
		check := func(m history.Moment, want proto.Zxid) {
			t.Helper()
			got, err := restoreMoment(t.Context(), a, m)
			if err != nil || got.tree.LastZxid() != want {
				t.Errorf("%+v: zxid %v, %v, want %v", m, got.tree.LastZxid(), err, want)
			}
		}
		for i := 0; i < len(states); i += len(states) / 5 {
			for _, at := range []time.Time{states[i].at.Add(-time.Millisecond), states[i].at} {
				want := states[0].zxid
				for _, next := range states[1:] {
					if next.at.After(at) {
						break
					}
					want = next.zxid
				}
				if !at.Before(span.Begin) {
					check(history.Moment{Time: at}, want)
				}
			}
			check(history.Moment{Zxid: states[i].zxid}, states[i].zxid)
		}
		if _, err := restoreMoment(t.Context(), a, history.Moment{Time: span.Begin.Add(-time.Millisecond)}); !errors.Is(err, history.ErrNotCovered) {
			t.Errorf("before the first moment: %v", err)
		}
	})
}

// An older state of the same ensemble must not continue the archive of the newer one.
func TestArchive_AheadOfTheEnsemble(t *testing.T) {
	withArchive(t, 4, func(t *testing.T, s *shipping) {
		a := s.open()
		before := len(s.memory.Names())
		id := a.String()[strings.LastIndex(a.String(), " ")+1:]
		older := &rolledBack{id: id, last: a.Spans()[0].Last}
		for _, term := range []uint64{1, 99} { // below the archive's end, and beyond it with other entries
			older.last, older.term = older.last-5+20*(term/99), term
			cfg := s.config
			cfg.Store, cfg.Logger = s.memory.Client(), s.logger
			shipper := archive.New(cfg)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			shipper.Run(ctx, older)
			cancel()
			if n := len(s.memory.Names()); n != before {
				t.Errorf("term %d: %d objects, there were %d", term, n, before)
			}
		}
		if got := s.log.Count("the archive is ahead of this ensemble"); got != 2 {
			t.Errorf("the log says %d times that the archive is ahead:\n%s", got, s.log.String())
		}
	})
}

// The commands, as users type them, on a directory.
func TestVerify_Commands(t *testing.T) {
	dir := t.TempDir()
	empty := "file:///" + strings.TrimPrefix(filepath.ToSlash(dir), "/")
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "name one URL"},
		{[]string{"/backup"}, "neither file:///DIRECTORY nor s3://BUCKET/PREFIX"},
		{[]string{empty}, "there are no objects of an archive in " + strings.TrimPrefix(empty, "file://") + ": an ensemble with this gozkd.archive.url begins one within seconds of its start"},
	} {
		if status, _, stderr := run(t, Verify, c.args...); status == 0 || !strings.Contains(stderr, c.want) {
			t.Errorf("%v: %d %s", c.args, status, stderr)
		}
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{empty, "--at", "yesterday", "--into", filepath.Join(dir, "new")}, `"yesterday" is no moment`},
		{[]string{"--from", "x.db", "--at", "0x1"}, "--at and --ensemble-id are for an archive"},
		{[]string{empty, "--into", filepath.Join(dir, "new")}, "there are no objects"},
	} {
		if status, _, stderr := run(t, Restore, c.args...); status == 0 || !strings.Contains(stderr, c.want) {
			t.Errorf("%v: %d %s", c.args, status, stderr)
		}
	}
	for text, want := range map[string]string{"0x1f": "", "2026-11-22T08:00:00Z": "", "2026-11-22T08:00:00.25+01:00": "", "0x": "is no moment", "0x1g": "is no moment", "12": "is no moment"} {
		if err := new(cli.Moment).Set(text); (err == nil) != (want == "") {
			t.Errorf("%s: %v", text, err)
		}
	}
}
