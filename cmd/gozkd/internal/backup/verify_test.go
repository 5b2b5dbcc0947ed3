package backup

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/archive"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/cli"
	"github.com/gozkd/gozkd/internal/history"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server"
)

// verifyAndRecord verifies as `gozkd verify --record` does.
func (s *shipping) verifyAndRecord() *report {
	s.t.Helper()
	r, a, err := verify(s.t.Context(), s.memory.Client(), "")
	if err == nil {
		err = r.record(s.t.Context(), a)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

// records returns the names of the records and what they hold.
func (s *shipping) records() (names []string, reports []report) {
	s.t.Helper()
	for _, name := range s.memory.Names() {
		if !strings.Contains(name, "/verified/") {
			continue
		}
		b, err := s.memory.Client().Get(s.t.Context(), name)
		if err != nil {
			s.t.Fatal(err)
		}
		var r report
		if err := json.Unmarshal(b, &r); err != nil {
			s.t.Fatal(err)
		}
		names, reports = append(names, name), append(reports, r)
	}
	return names, reports
}

// A7: a damaged object, and a lost one, make the verification fail. Each member learns the last
// result, and there is one record of it. The report says which moments can be restored
// nevertheless.
func TestVerify_DamageReachesMembers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShipping(t, 5, 1)
		defer s.end()
		s.config.BaseInterval, s.pause = time.Minute, 10_000
		for id := range s.procs {
			s.kill(id)
			s.start(id)
		}
		ctx, cancel := context.WithCancel(t.Context())
		wait := s.write(ctx)
		s.watch(150 * time.Second) // more than one base
		cancel()
		wait()
		time.Sleep(shipInterval)
		if at, failed := s.verified(); !at.IsZero() || failed {
			t.Errorf("without a verification: %v, failed: %v", at, failed)
		}
		var logs, bases []string
		for _, name := range s.memory.Names() {
			if strings.Contains(name, "/log/") {
				logs = append(logs, name)
			} else if strings.Contains(name, "/base/") && strings.HasSuffix(name, ".last") {
				bases = append(bases, name)
			}
		}
		get := func(name string) []byte {
			t.Helper()
			b, err := s.memory.Client().Get(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			return b
		}
		damaged, first, second, newest := logs[len(logs)/2], bases[0], bases[1], bases[len(bases)-1]
		original, firstBase, secondBase, newestBase := get(damaged), get(first), get(second), get(newest)
		flip := func(b []byte) []byte { return append(slices.Clone(b[:len(b)-1]), b[len(b)-1]^1) }
		for _, c := range []struct {
			what    string
			name    string
			object  []byte
			problem string
			ranges  int // of moments that can be restored
		}{
			{"sound", damaged, original, "", 1},
			{"damaged", damaged, flip(original), damaged, 2},
			{"lost", damaged, nil, "are lost", 2},
			{"repaired", damaged, original, "", 1},
			{"a later base is damaged", second, flip(secondBase), second, 1},
			{"it is repaired", second, secondBase, "", 1},
			{"the newest base is damaged", newest, flip(newestBase), newest, 1},
			{"the newest base is repaired", newest, newestBase, "", 1},
			{"the first base is damaged", first, flip(firstBase), first, 1},
			{"all is repaired", first, firstBase, "", 1},
		} {
			s.memory.Change(c.name, func([]byte) []byte { return c.object })
			r := s.verifyAndRecord()
			s.checkRestorable(c.what, r, c.ranges)
			if _, err := LastState(t.Context(), s.open()); err != nil {
				t.Errorf("%s: the last state: %v", c.what, err)
			}
			if n := r.Parts[0].Bases; c.object != nil && n < 2 {
				t.Errorf("%s: %d bases", c.what, n)
			}
			if text := strings.Join(r.Problems, "\n"); r.Sound != (c.problem == "") || !strings.Contains(text, c.problem) {
				t.Errorf("%s: %+v", c.what, r)
			}
			if names, reports := s.records(); len(names) != 1 || reports[0].Sound != r.Sound || !reports[0].Begun.Equal(r.Begun) {
				t.Errorf("%s: records %v %+v", c.what, names, reports)
			}
			time.Sleep(20 * shipInterval)
			if at, failed := s.verified(); at.UnixMilli() != r.Begun.UnixMilli() || failed != (c.problem != "") {
				t.Errorf("%s: the members know of %v, failed: %v", c.what, at, failed)
			}
		}
		if a := s.open(); len(a.Strange) > 0 {
			t.Errorf("unknown objects: %v", a.Strange)
		}
	})
}

// verified returns what all members know of the last verification.
func (s *shipping) verified() (at time.Time, failed bool) {
	var all []server.ArchiveStats
	for _, p := range s.procs {
		all = append(all, p.shipper.Stats())
	}
	for _, st := range all {
		if !st.Verified.Equal(all[0].Verified) || st.VerifyFailed != all[0].VerifyFailed {
			s.t.Errorf("members differ: %+v", all)
		}
	}
	return all[0].Verified, all[0].VerifyFailed
}

// checkRestorable compares a report with what a restore of each sampled moment says.
func (s *shipping) checkRestorable(what string, r *report, want int) {
	s.t.Helper()
	var ranges []moments
	for _, p := range r.Parts {
		ranges = append(ranges, p.Restorable...)
	}
	if len(ranges) != want {
		s.t.Errorf("%s: %d ranges of moments can be restored, want %d: %+v", what, len(ranges), want, r.Parts)
	}
	number := func(zxid string) int64 {
		n, err := strconv.ParseInt(zxid, 0, 64)
		if err != nil {
			s.t.Fatal(err)
		}
		return n
	}
	restored, h := 0, s.history()
	for zxid := range s.samples {
		_, err := restoreMoment(s.t.Context(), s.open(), history.Moment{Zxid: proto.Zxid(zxid)})
		told := slices.ContainsFunc(ranges, func(m moments) bool { return number(m.FirstZxid) <= zxid && zxid <= number(m.LastZxid) })
		if told != (err == nil) {
			s.t.Errorf("%s: zxid %#x: %v, but the report says %+v", what, zxid, err, ranges)
		}
		_, err = h.At(s.t.Context(), history.Query{Path: "/"}, history.Moment{Zxid: proto.Zxid(zxid)})
		if told != (err == nil) {
			s.t.Errorf("%s: zxid %#x over HTTP: %v, but the report says %+v", what, zxid, err, ranges)
		}
		if told {
			restored++
		}
	}
	if restored == 0 || restored < len(s.samples) && r.Sound {
		s.t.Errorf("%s: %d of %d moments were restored", what, restored, len(s.samples))
	}
}

// The text has the moments of damaged parts too.
func TestVerify_PrintsMoments(t *testing.T) {
	var out, errOut strings.Builder
	c := &command{cli.Command{Name: "verify", Env: cli.Env{Out: &out, Err: &errOut}}}
	to := time.Date(2026, 11, 28, 8, 0, 0, 0, time.UTC)
	c.print(&report{Parts: []partReport{
		{FirstEntry: 1, LastEntry: 20, To: to, Restorable: []moments{{time.Time{}, to, "0x1", "0x9"}, {to, to, "0xb", "0xf"}}},
		{FirstEntry: 25, LastEntry: 30, From: to, To: to},
	}, Problems: []string{"damaged"}})
	const at = "2026-11-28T08:00:00Z"
	for _, want := range []string{
		"the first write to " + at + ", zxid 0x1 to 0x9\n", at + " to " + at + ", zxid 0xb to 0xf\n", "none from " + at + " to " + at + ", entries 25 to 30\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "digest") || !strings.Contains(errOut.String(), "damaged") {
		t.Errorf("%s%s", out.String(), errOut.String())
	}
}

// Without an id the archive of each ensemble is verified, and one that is not sound fails all.
func TestVerify_Ensembles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShipping(t, 6, 1)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		s.write(ctx)()
		s.end()
		own, objects := fmt.Sprintf("%016x", s.open().Ensemble), s.memory.Client()
		if err := objects.Put(t.Context(), "00000000000000ab/log/x", nil); err != nil {
			t.Fatal(err)
		}
		all, err := archive.Ensembles(t.Context(), objects)
		if err != nil || len(all) != 2 {
			t.Fatalf("%v %v", all, err)
		}
		for _, v := range []struct {
			ids     []string
			status  int
			records int
		}{{[]string{own}, cli.OK, 1}, {all, cli.Failed, 2}} {
			var out, errOut strings.Builder
			c := &command{cli.Command{Name: "verify", Env: cli.Env{Out: &out, Err: &errOut}}}
			status := c.verify(t.Context(), objects, v.ids, false, true)
			names, _ := s.records()
			archives := strings.Count(out.String(), ", ensemble ")
			if status != v.status || len(names) != v.records || archives != len(v.ids) {
				t.Errorf("%v: status %d, records %v\n%s%s", v.ids, status, names, &out, &errOut)
			}
		}
	})
}
