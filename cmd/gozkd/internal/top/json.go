package top

import (
	"math"
	"time"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/probe"
)

// ensembleJSON is a line of the JSON output. Unknown values are null or missing.
type ensembleJSON struct {
	At       time.Time    `json:"at"`
	Leader   *string      `json:"leader"` // address
	Zxid     string       `json:"zxid"`
	Problems []string     `json:"problems"`
	Members  []memberJSON `json:"members"`
	Clients  []clientJSON `json:"clients"`
	Hot      probe.Hot    `json:"hot"`
	// Missing explains why information is missing.
	Missing []string `json:"missing"`
}

type memberJSON struct {
	ID          uint64         `json:"id,omitempty"`
	Server      string         `json:"server"`
	Role        string         `json:"role"`
	Error       string         `json:"error,omitempty"`
	SinceS      float64        `json:"role_known_for_s"`
	Version     string         `json:"version,omitempty"`
	Level       *int64         `json:"feature_level"`
	MaxLevel    *int64         `json:"feature_level_max"`
	Zxid        string         `json:"zxid,omitempty"`
	Lag         *int64         `json:"lag"`
	LagIsExact  bool           `json:"lag_is_exact"`
	Requests    *float64       `json:"requests_per_s"`
	Reads       *float64       `json:"reads_per_s"`
	Writes      *float64       `json:"writes_per_s"`
	LatencyMs   *float64       `json:"latency_ms"`
	FsyncMs     *float64       `json:"fsync_ms"`
	SinceStart  *probe.Latency `json:"latency_ms_since_start,omitempty"`
	Outstanding *int64         `json:"outstanding"`
	Connections *int64         `json:"connections"`
	Watches     *int64         `json:"watches"`
	Znodes      *int64         `json:"znodes"`
	DataBytes   *int64         `json:"data_bytes"`
}

type clientJSON struct {
	Client    string        `json:"client"`
	Server    string        `json:"server"`
	Session   string        `json:"session"`
	Requests  *float64      `json:"requests_per_s"`
	Queued    int64         `json:"queued"`
	LatencyMs probe.Latency `json:"latency_ms_since_start"`
	LastOp    string        `json:"last_op"`
	TimeoutMs int64         `json:"timeout_ms"`
}

// json returns everything that is known. Lists are never null.
func (e *ensemble) json() ensembleJSON {
	clients, missing := e.clients()
	hot, noHot := e.hot()
	if hot.Paths == nil {
		hot.Paths = []probe.HotPath{}
	}
	if hot.Clients == nil {
		hot.Clients = []probe.HotClient{}
	}
	noMonitor := e.missing(func(s *Sample) error { return s.MonitorErr })
	j := ensembleJSON{
		At: e.now, Zxid: e.zxid().String(), Problems: append([]string{}, e.problems()...), Hot: hot,
		Members: make([]memberJSON, len(e.members)), Clients: make([]clientJSON, len(clients)),
		Missing: append(append(append([]string{}, noMonitor...), missing...), noHot...),
	}
	if l := e.leader(); l != nil {
		j.Leader = &l.Address
	}
	for i, m := range e.members {
		j.Members[i] = m.json(e)
	}
	for i := range clients {
		c := &clients[i]
		j.Clients[i] = clientJSON{Client: c.Client, Server: c.Member.Address, Session: c.Session.String(), Requests: orNull(c.Requests),
			Queued: c.Queued, LatencyMs: c.LatencyMs, LastOp: c.LastOp, TimeoutMs: c.TimeoutMs}
	}
	return j
}

func (m *member) json(e *ensemble) memberJSON {
	j := memberJSON{ID: m.ID, Server: m.Address, Role: roleText(m), SinceS: e.now.Sub(m.since).Seconds()}
	if l := e.lag(m); l.known {
		j.Lag, j.LagIsExact = &l.n, !l.estimated
	}
	if m.last.Err != nil {
		j.Error = probe.Cause(m.last.Err)
	}
	if !m.up() {
		return j
	}
	st := &m.last.State
	j.Version, j.Zxid, j.SinceStart = st.Version, st.Zxid.String(), &st.LatencyMs
	j.Outstanding, j.Connections, j.Znodes = &st.Outstanding, &st.Connections, &st.Znodes
	j.Requests, j.Reads, j.Writes = orNull(m.rates.Requests), orNull(m.rates.Reads), orNull(m.rates.Writes)
	j.LatencyMs, j.FsyncMs = orNull(m.rates.LatencyMs), orNull(m.rates.FsyncMs)
	if active, ready, ok := m.levels(); ok {
		j.Level, j.MaxLevel = &active, &ready
	}
	if n, ok := m.last.Monitor.Int("watch_count"); ok {
		j.Watches = &n
	}
	if n, ok := m.last.Monitor.Int("approximate_data_size"); ok {
		j.DataBytes = &n
	}
	return j
}

// orNull returns nil for an unknown value.
func orNull(v float64) *float64 {
	if math.IsNaN(v) {
		return nil
	}
	return &v
}
