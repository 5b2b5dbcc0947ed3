package top

import (
	"fmt"
	"strings"
	"time"
)

// archiveLate is how late the archive must be to be a problem.
const archiveLate = time.Minute

// archive returns how far the archive is behind, if the servers have one, which of them writes it,
// and the result of its last verification. bad: it is late, or the verification failed.
func (e *ensemble) archive() (note string, bad bool) {
	var lag time.Duration
	var writers []string
	verified, failed := int64(0), false
	for _, m := range e.members {
		seconds, ok := m.last.Monitor.Float("gozkd_archive_lag_seconds")
		if !m.up() || !ok {
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
