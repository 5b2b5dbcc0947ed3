package top

import (
	"fmt"
	"strings"
	"time"
)

// archiveLate is how late the archive must be to be a problem.
const archiveLate = time.Minute

// archive returns how far the archive is behind, if the servers have one, and which of them writes it.
// late: this is a problem.
func (e *ensemble) archive() (note string, late bool) {
	var lag time.Duration
	var writers []string
	for _, m := range e.members {
		seconds, ok := m.last.Monitor.Float("gozkd_archive_lag_seconds")
		if !m.up() || !ok {
			continue
		}
		note, lag = "archive", max(lag, time.Duration(seconds*float64(time.Second)))
		if n, _ := m.last.Monitor.Int("gozkd_archive_shipper"); n > 0 {
			writers = append(writers, m.name())
		}
	}
	switch {
	case note == "":
		return "", false
	case len(writers) > 0:
		note += " written by " + strings.Join(writers, " ")
	}
	return fmt.Sprintf("%s, %v behind", note, lag.Round(time.Second)), lag > archiveLate
}
