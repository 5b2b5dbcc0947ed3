package top

import (
	"fmt"
	"strings"
	"time"
)

// info returns the versions of the members while these differ, the feature level while members are
// ready for a higher one, and the state of the archive unless it is a problem.
func (e *ensemble) info() (notes []string) {
	versions := e.onMembers(func(m *member) (string, bool) { return versionText(m), m.last.State.Gozkd() })
	if len(versions) > 1 {
		notes = append(notes, "versions: "+strings.Join(versions, ", "))
	}
	level := int64(0)
	ready := e.onMembers(func(m *member) (string, bool) {
		now, most, ok := m.levels()
		level = max(level, now)
		return fmt.Sprint(most), ok && most > now
	})
	if len(ready) > 0 {
		notes = append(notes, fmt.Sprintf("feature level %d, ready for %s", level, strings.Join(ready, ", ")))
	}
	if note, bad := e.archive(); note != "" && !bad {
		notes = append(notes, note)
	}
	return notes
}

// levels returns the active feature level and the highest level that the member agrees to activate.
func (m *member) levels() (active, ready int64, ok bool) {
	active, knows := m.last.Monitor.Int("gozkd_feature_level")
	ready, ok = m.last.Monitor.Int("gozkd_feature_level_max")
	return active, ready, ok && knows
}

// onMembers is groupBy with the names of the members in the text of each value.
func (e *ensemble) onMembers(of func(*member) (value string, ok bool)) []string {
	values, members := e.groupBy(of)
	for i, v := range values {
		values[i] = v + " on " + strings.Join(members[v], " ")
	}
	return values
}

// archiveLate is how late the archive must be to be a problem.
const archiveLate = time.Minute

// archive returns how far the archive is behind, if the servers have one, which of them writes it,
// and the result of its last verification. bad: it is late, or the verification failed.
func (e *ensemble) archive() (note string, bad bool) {
	var lag time.Duration
	var writers []string
	verified, failed := int64(0), false
	for _, m := range e.serving() {
		seconds, ok := m.last.Monitor.Float("gozkd_archive_lag_seconds")
		if !ok {
			continue
		}
		note, lag = "archive", max(lag, time.Duration(seconds*float64(time.Second)))
		if n, _ := m.last.Monitor.Int("gozkd_archive_shipper"); n > 0 {
			writers = append(writers, m.name())
		}
		if at, _ := m.last.Monitor.Int("gozkd_archive_verified_seconds"); at > verified {
			n, _ := m.last.Monitor.Int("gozkd_archive_verify_failed")
			verified, failed = at, n > 0
		}
	}
	switch {
	case note == "":
		return "", false
	case len(writers) > 0:
		note += " written by " + strings.Join(writers, " ")
	}
	note = fmt.Sprintf("%s, %v behind", note, lag.Round(time.Second))
	if verified > 0 {
		result := map[bool]string{false: "verified", true: "verification FAILED"}[failed]
		note += fmt.Sprintf(", %s %s", result, time.Unix(verified, 0).UTC().Format("2006-01-02 15:04 UTC"))
	}
	return note, lag > archiveLate || failed
}
