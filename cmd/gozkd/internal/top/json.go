package top

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/gozkd/gozkd/internal/memberid"
	"github.com/gozkd/gozkd/internal/probe"
	"github.com/gozkd/gozkd/server/facts"
)

// ensembleJSON is a line of the JSON output. Unknown values are null or missing.
type ensembleJSON struct {
	At       time.Time      `json:"at"`
	Leader   *string        `json:"leader"` // address
	Zxid     string         `json:"zxid"`
	Problems []string       `json:"problems"`
	Members  []memberJSON   `json:"members"`
	Clients  []clientJSON   `json:"clients"`
	Hot      facts.HotSpots `json:"hot"`
	// Missing explains why information is missing.
	Missing []string `json:"missing"`
}

type memberJSON struct {
	ID          *uint64        `json:"id,omitempty"`
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
	// PeerLinks are the connections to and from other members.
	PeerLinks    *int64 `json:"peer_links,omitempty"`
	PeerLinksTLS *int64 `json:"peer_links_tls,omitempty"`
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
	noMonitor := e.missing(func(s *Sample) error { return s.MonitorErr })
	j := ensembleJSON{
		At: e.now, Zxid: e.zxid().String(), Problems: append([]string{}, e.problems()...), Hot: hot,
		Members: make([]memberJSON, len(e.members)), Clients: make([]clientJSON, len(clients)),
		Missing: append(append(append([]string{}, noMonitor...), missing...), noHot...),
	}
	if l := e.followed(); l != nil {
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
	role, _ := m.role(e, theme{})
	j := memberJSON{Server: m.Address, Role: role, SinceS: e.now.Sub(m.since).Seconds()}
	if m.ID != 0 {
		j.ID = new(memberid.Number(m.ID))
	}
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
	if tls, all := m.last.Monitor.PeerLinks(); all > 0 {
		j.PeerLinks, j.PeerLinksTLS = &all, &tls
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

// stream writes the output once, or for each round, in which each member is asked once more.
func stream(ctx context.Context, w *watcher, o options, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var e ensemble
	var err error
	rounds := make(map[string]int)
	round, up := 2, 0 // the first round has no rates
	w.run(ctx, func(r Report) {
		if ctx.Err() != nil {
			return
		}
		e.observe(r)
		rounds[r.Sample.Address]++
		for _, m := range e.members {
			need := round
			if o.once && !m.up() {
				need = 1 // it has no rates
			}
			if rounds[m.Address] < need {
				return
			}
		}
		round, up = round+1, e.totals().up
		if o.json {
			err = json.NewEncoder(out).Encode(e.json())
		} else {
			_, err = io.WriteString(out, e.text())
		}
		if o.once || err != nil {
			cancel()
		}
	})
	switch {
	case err != nil:
		return fmt.Errorf("writing: %w", err)
	case o.once && round == 2:
		return context.Cause(ctx)
	case o.once && up == 0:
		return errors.New("no member serves")
	}
	return nil
}

// text returns everything that is known as plain text of any length.
func (e *ensemble) text() string {
	const wide = 200
	m := newModel(theme{}, 0)
	m.ensemble, m.width, m.height = *e, wide, 2*len(e.members)+2 // room for all members
	lines := m.head()
	fixed, rows := m.clientLines()
	lines = append(append(lines, fixed...), rows...)
	lines = append(lines, "")
	lines = append(lines, m.hotLines()...)
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n") + "\n"
}
