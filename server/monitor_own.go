package server

import (
	"time"

	"github.com/gozkd/gozkd/proto"
)

// Bounds of histograms, as powers of two: of nanoseconds, 33 µs to 34 s; of requests, 1 to 32,768.
var (
	durationPowers = []int{15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 32, 35}
	numberPowers   = []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15}
)

func seconds(h *histogram) Histogram {
	return Histogram{snapshot(h), float64(time.Second), durationPowers}
}

func numbers(h *histogram) Histogram { return Histogram{snapshot(h), 1, numberPowers} }

// monitorOwn adds what ZooKeeper has no names for.
func (s *Server) monitorOwn(l *values) {
	st := &s.stats
	st.ops.each(func(op proto.OpCode, h *histogram) {
		l.addOf("gozkd_request_duration_seconds", op.String(), seconds(h))
	})
	for i := range st.stages {
		l.addOf("gozkd_write_stage_duration_seconds", stageNames[i], seconds(&st.stages[i]))
	}
	l.add("gozkd_log_sync_duration_seconds", seconds(&st.syncs))
	l.add("gozkd_checkpoint_duration_seconds", seconds(&st.checkpoints))
	l.add("gozkd_apply_duration_seconds", seconds(&st.applying))
	l.add("gozkd_entry_requests", numbers(&st.entries))
	l.add("gozkd_slow_requests_total", st.slowRequests.Load())
	l.add("gozkd_sessions_lost_since_election", st.lostSince.Load())
	if !s.alone() {
		l.add("gozkd_requests_resent_total", s.counts().Resent)
	}
}
