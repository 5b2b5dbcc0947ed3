package top

import (
	"slices"
	"testing"

	"github.com/gozkd/gozkd/internal/probe"
	"github.com/gozkd/gozkd/server/facts"
)

// Data near their limit are a problem, which is said once.
func TestEnsemble_DataNearTheirLimit(t *testing.T) {
	var e ensemble
	for _, status := range []string{"", "data near their limit: 80", "data near their limit: 81"} {
		m := &member{Entry: Entry{Address: "a:1"}, hasSample: true, last: Sample{Monitor: probe.Monitor{"gozkd_data_status": status}}}
		m.last.State.Mode = facts.Leader
		e.members = append(e.members, m)
	}
	if problems := e.problems(); !slices.Equal(problems[1:], []string{"data near their limit: 80"}) {
		t.Errorf("%q", problems)
	}
}

// An archive is a note with its writer; one that is late is a problem.
func TestArchive_NoteOrProblem(t *testing.T) {
	for _, c := range []struct {
		lags     []string // by member; "": it has no archive
		verified string   // by the second member; "": it knows of no verification
		failed   string
		note     string
		problems []string
	}{
		{[]string{"", ""}, "", "", "", nil},
		{[]string{"0", "1.6"}, "0", "0", "archive written by a:1, 2s behind", nil},
		{[]string{"0", "1.6"}, "1000000000", "0", "archive written by a:1, 2s behind, verified 2001-09-09 01:46 UTC", nil},
		{[]string{"0", "1.6"}, "1000000000", "1", "", []string{"archive written by a:1, 2s behind, verification FAILED 2001-09-09 01:46 UTC"}},
		{[]string{"0", "61"}, "", "", "", []string{"archive written by a:1, 1m1s behind"}},
	} {
		var e ensemble
		for i, lag := range c.lags {
			m := &member{Entry: Entry{Address: string(rune('a'+i)) + ":1"}, hasSample: true, last: Sample{Monitor: probe.Monitor{}}}
			if m.last.State.Mode = facts.Standalone; lag != "" {
				m.last.Monitor["gozkd_archive_lag_seconds"] = lag
				m.last.Monitor["gozkd_archive_shipper"] = []string{"1", "0"}[min(i, 1)]
				if i == 1 {
					m.last.Monitor["gozkd_archive_verified_seconds"], m.last.Monitor["gozkd_archive_verify_failed"] = c.verified, c.failed
				}
			}
			e.members = append(e.members, m)
		}
		info := ""
		if list := e.info(); len(list) > 0 {
			info = list[0]
		}
		if info != c.note {
			t.Errorf("%q: note %q, want %q", c.lags, info, c.note)
		}
		problems := slices.DeleteFunc(e.problems(), func(p string) bool { return p != "" && p[0] == 's' }) // standalone, because they have no leader
		if !slices.Equal(problems, c.problems) {
			t.Errorf("%q: problems %q, want %q", c.lags, problems, c.problems)
		}
	}
}
