package link

import (
	"time"

	"github.com/gozkd/gozkd/internal/rawio"
)

// SetTimeout sets the timeout of the client's session. After half of it without a sign of the
// client, the system probes whether the client's system answers: then the client's process stands
// still, and the network is not cut.
func (l *Link) SetTimeout(d time.Duration) { l.timeout.Store(int64(d)) }

// probe begins or ends the probes. NoteProgress calls it.
func (l *Link) probe(now time.Time) {
	timeout := time.Duration(l.timeout.Load())
	silent := timeout > 0 && now.Sub(l.LastAlive(now)) > timeout/2
	if l.raw == nil || silent == l.probing.Load() {
		return
	}
	if l.probing.Store(silent); silent {
		l.raw.Probe(timeout / 8)
	} else {
		l.raw.Probe(0)
	}
}

// Answers returns the results of the probes.
func (l *Link) Answers() rawio.Answers {
	if !l.probing.Load() {
		return rawio.Answers{}
	}
	return l.raw.Answers()
}
