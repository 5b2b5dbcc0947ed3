package backup

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/archive"
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
// result, and there is one record of it.
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
		time.Sleep(150 * time.Second) // more than one base
		cancel()
		wait()
		time.Sleep(shipInterval)
		if at, failed := s.verified(); !at.IsZero() || failed {
			t.Errorf("without a verification: %v, failed: %v", at, failed)
		}
		var logs []string
		for _, name := range s.memory.Names() {
			if strings.Contains(name, "/log/") {
				logs = append(logs, name)
			}
		}
		damaged := logs[len(logs)/2]
		original, err := s.memory.Client().Get(t.Context(), damaged)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			what    string
			object  []byte
			problem string
		}{
			{"sound", original, ""},
			{"damaged", append(slices.Clone(original[:len(original)-1]), original[len(original)-1]^1), damaged},
			{"lost", nil, "are lost"},
			{"repaired", original, ""},
		} {
			s.memory.Change(damaged, func([]byte) []byte { return c.object })
			r := s.verifyAndRecord()
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
		if a := s.open(); len(a.Strange()) > 0 {
			t.Errorf("unknown objects: %v", a.Strange())
		}
	})
}

// verified returns what all members know of the last verification.
func (s *shipping) verified() (at time.Time, failed bool) {
	var all []archive.Stats
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
