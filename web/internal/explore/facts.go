package explore

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/gozkd/gozkd/internal/memberid"
	"github.com/gozkd/gozkd/internal/serverlist"
	"github.com/gozkd/gozkd/server"
)

// member is a server of the ensemble in JSON, as far as this server knows it.
type member struct {
	ID        int    `json:"id"`
	Role      string `json:"role"`
	Own       bool   `json:"own,omitempty"` // the server that answers
	Client    string `json:"client,omitempty"`
	Peer      string `json:"peer,omitempty"`
	Connected *bool  `json:"connected,omitempty"`
	LinkTo    string `json:"linkTo,omitempty"`
	LinkFrom  string `json:"linkFrom,omitempty"`
	Lag       *int64 `json:"lagEntries,omitempty"` // known to the leader, as InStep
	InStep    *bool  `json:"inStep,omitempty"`
	// Answers are those of another member to four-letter words.
	Answers *answers `json:"answers,omitempty"`
}

type ensembleView struct {
	Members []*member `json:"members"`
	Leader  int       `json:"leader"`
	Whole   bool      `json:"whole"`
	Version string    `json:"version"`
	Mode    string    `json:"mode"`
	Zxid    string    `json:"zxid"`
	Digest  string    `json:"digest"`
	Znodes  int       `json:"znodes"`
	// Sizes in bytes.
	DataBytes    int64  `json:"dataBytes"`
	DataStatus   string `json:"dataStatus,omitempty"` // the data are near their limit
	DataDirBytes int64  `json:"dataDirBytes"`
	LogDirBytes  int64  `json:"logDirBytes"`
	UptimeMs     int64  `json:"uptimeMs"`
	// LastSnapshot is when the last checkpoint was written, Unix ms; 0: none.
	LastSnapshot int64 `json:"lastSnapshot,omitempty"`
	// LastChange is when a sample of the last hour last saw another zxid, Unix ms; 0: none did.
	LastChange int64 `json:"lastChange,omitempty"`
	// Values are those of mntr that are shown: see shown.
	Values map[string]any `json:"values"`
}

// shown are the names of the values that ensemble answers with, beside those about members.
var shown = []string{
	"gozkd_term", "gozkd_applied_index", "gozkd_feature_level", "gozkd_feature_level_max", "gozkd_quorum_reachable",
	"gozkd_voters_connected", "gozkd_log_pending_seconds", "gozkd_log_stalls_total", "gozkd_checkpoint_reverted",
	"digest_mismatches_count", "gozkd_tls_certificate_expires_seconds", "gozkd_archive_lag_seconds", "gozkd_archive_shipper", "gozkd_archive_errors_total",
	"gozkd_archive_gaps_total", "gozkd_archive_verified_seconds", "gozkd_archive_verify_failed", "fsynctime",
	"open_file_descriptor_count", "max_file_descriptor_count", "gozkd_data_weight_bytes", "gozkd_data_limit_bytes",
}

// ensemble answers with the members, and the state of this server. With brief it asks no others.
func (e *explorer) ensemble(q *request) (any, error) {
	s := e.server.Facts()
	st, stats := s.Status(), s.Stats()
	_, digest := s.Digest()
	v := ensembleView{
		Members: []*member{}, Leader: memberid.NumberOrNone(st.Leader), Whole: st.Whole, Version: stats.Version, Mode: st.Mode,
		Zxid: idText(st.Zxid), Digest: fmt.Sprintf("%016x", digest), Znodes: stats.Znodes, DataBytes: stats.DataBytes,
		UptimeMs: stats.Uptime.Milliseconds(), Values: make(map[string]any),
	}
	if !isInsider(q.Call) {
		stats.Growth.Largest = nil // paths
	}
	v.DataStatus, v.LastChange = stats.Growth.String(), e.samples.lastChange()
	v.DataDirBytes, v.LogDirBytes = s.DirSizes()
	if _, at, ok := e.server.Backups().LastSnapshot(); ok {
		v.LastSnapshot = at.UnixMilli()
	}
	var answers map[int]*answers
	set, _, _ := serverlist.ParseConfig(s.Membership()) // the server's own text
	if !q.query.Has("brief") {
		answers = e.others.of(set, st.Member)
	}
	rows := make(map[int]*member)
	for _, m := range s.Members() {
		row := newMember(m, &st)
		if line, ok := set.Get(uint64(m.ID)); ok && line.ClientPort != 0 {
			row.Client = line.Dialed(0) // not 0.0.0.0
		}
		row.Answers = answers[m.ID]
		v.Members, rows[m.ID] = append(v.Members, row), row
	}
	for _, value := range s.Monitor() {
		n, whole := value.Is.(int64)
		switch row := rows[value.Peer]; {
		case value.Peer == 0 && value.Key == "" && slices.Contains(shown, value.Name):
			v.Values[value.Name] = number(value.Is)
		case row == nil || !whole:
		case value.Name == "gozkd_peer_lag_entries":
			row.Lag = &n
		case value.Name == "gozkd_peer_in_step":
			row.InStep = new(n == 1)
		case value.Name == "gozkd_peer_connected":
			row.Connected = new(n == 1)
		}
	}
	if len(v.Members) == 0 {
		v.Members = append(v.Members, &member{ID: memberid.Number(st.Member), Role: st.Mode, Own: true,
			Client: e.server.ConnectString()})
	}
	return v, nil
}

func newMember(m server.MemberStatus, st *server.Status) *member {
	row := &member{ID: memberid.Number(m.ID), Role: "follower", Own: m.ID == st.Member, Peer: m.PeerAddress, LinkTo: m.LinkTo, LinkFrom: m.LinkFrom}
	switch {
	case m.ID == st.Leader:
		row.Role = "leader"
	case m.Observer:
		row.Role = "observer"
	}
	return row
}

// number returns a value in a form that JSON can express; for times the count and quantiles.
func number(v any) any {
	switch v := v.(type) {
	case server.Summary:
		return quantiles(uint64(max(v.Count, 0)), v.Quantile, 1)
	case server.Histogram:
		return quantiles(v.Count(), v.Quantile, 1000) // seconds to milliseconds
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil
		}
	}
	return v
}

func quantiles(count uint64, q func(float64) float64, scale float64) any {
	if count == 0 {
		return map[string]any{"count": 0}
	}
	return map[string]any{"count": count, "p50": scale * q(0.5), "p99": scale * q(0.99), "max": scale * q(1)}
}

// activity answers with counters, two of which make rates, and the hottest paths and clients.
func (e *explorer) activity(q *request) (any, error) {
	st := e.server.Facts().Stats()
	operations, stages := make(map[string]any), make(map[string]any)
	values := make(map[string]any)
	for _, v := range e.server.Facts().Monitor() {
		switch {
		case v.Name == "gozkd_request_duration_seconds":
			operations[v.Key] = number(v.Is)
		case v.Name == "gozkd_write_stage_duration_seconds":
			stages[v.Key] = number(v.Is)
		case v.Key == "" && v.Peer == 0 && (strings.HasPrefix(v.Name, "gozkd_slow") || v.Name == "watch_count" || v.Name == "fsynctime"):
			values[v.Name] = number(v.Is)
		}
	}
	answer := map[string]any{
		"time": time.Now().UnixMilli(), "received": st.Received, "sent": st.Sent, "connections": st.Connections, "outstanding": st.Outstanding,
		"sessions": st.Sessions, "znodes": st.Znodes, "latencyMs": map[string]any{"min": st.MinLatencyMs, "avg": st.AvgLatencyMs, "max": st.MaxLatencyMs},
		"operations": operations, "stages": stages, "values": values,
	}
	if isInsider(q.Call) {
		answer["hot"] = e.server.Facts().Hot()
		answer["slow"] = e.slow()
	}
	return answer, nil
}

type slowRow struct {
	Time    int64   `json:"time"` // Unix ms
	TookMs  float64 `json:"tookMs"`
	Op      string  `json:"op"`
	Path    string  `json:"path,omitempty"`
	Session string  `json:"session"`
	Client  string  `json:"client"`
}

// slow returns the last slow requests, and the milliseconds from which on a request is slow.
func (e *explorer) slow() any {
	last, from := e.server.Facts().SlowRequests()
	list := make([]slowRow, len(last))
	for i, s := range last {
		list[i] = slowRow{s.Time.UnixMilli(), float64(s.Took.Microseconds()) / 1000, s.Op, s.Path, idText(s.Session), s.Client}
	}
	return map[string]any{"fromMs": from.Milliseconds(), "requests": list}
}
