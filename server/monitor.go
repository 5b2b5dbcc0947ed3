package server

import (
	"iter"
	"math"
	"strconv"
	"strings"
)

// Value is one thing that a server knows of itself. The mntr word, the admin commands and the metrics all are made of these.
type Value struct {
	// Name is ZooKeeper's key of mntr without the zk_ in front, such as znode_count, or one of ours, which begin with gozkd_.
	Name string
	// Peer is the other member that the value is about; 0: none. The names of such values begin with gozkd_peer_.
	Peer int
	// Is is an int64, a float64, a string or a Summary.
	Is any
}

// Summary is what was measured of something that happens again and again, since the start or the srst word. Times are
// milliseconds.
type Summary struct {
	Count, Sum, Min, Max int64
	Avg                  float64
}

// peerPrefix is that of the names of values about another member, whose number follows it in mntr.
const peerPrefix = "gozkd_peer_"

// Lines ranges over the lines of mntr that the value makes, without the zk_ in front: one, or five of a Summary. What they
// say is an int64, a float64 or a string.
func (v Value) Lines() iter.Seq2[string, any] {
	return func(yield func(string, any) bool) {
		sum, ok := v.Is.(Summary)
		switch {
		case ok:
			_ = yield("avg_"+v.Name, sum.Avg) && yield("min_"+v.Name, sum.Min) && yield("max_"+v.Name, sum.Max) &&
				yield("cnt_"+v.Name, sum.Count) && yield("sum_"+v.Name, sum.Sum)
		case v.Peer != 0:
			yield(peerPrefix+strconv.Itoa(v.Peer)+"_"+strings.TrimPrefix(v.Name, peerPrefix), v.Is)
		default:
			yield(v.Name, v.Is)
		}
	}
}

// Monitor returns what the mntr word tells, in its order: what of ZooKeeper's keys has a meaning here and was counted or
// measured. Before Start has opened the data, and when the server stopped, it returns nil. A server that waits for a leader
// has values, though it does not answer the word. The caller owns the result.
//
// Which keys are missing and why is in docs/words.md.
func (s *Server) Monitor() []Value {
	if !s.accepting.Load() {
		return nil
	}
	var values []Value
	add := func(name string, is any) { values = append(values, Value{Name: name, Is: is}) }
	st, f := &s.stats, s.facts()
	low, avg, high := st.latency.read()
	add("version", s.versionLine())
	add("server_state", s.mode())
	add("avg_latency", round(avg))
	add("max_latency", high)
	add("min_latency", low)
	add("packets_received", st.received.Load())
	add("packets_sent", st.sent.Load())
	add("num_alive_connections", int64(s.numConns()))
	add("outstanding_requests", int64(s.outstanding.outstanding()))
	add("znode_count", int64(f.znodes))
	add("watch_count", int64(s.watches.Len()))
	add("ephemerals_count", int64(f.ephemeral))
	add("approximate_data_size", f.dataBytes)
	add("global_sessions", int64(f.sessions))
	add("uptime", s.cfg.Now().Sub(s.started).Milliseconds())
	if !s.alone() {
		values = s.monitorMember(values)
	}
	if open, limit, ok := fileDescriptors(); ok {
		add("open_file_descriptor_count", open)
		add("max_file_descriptor_count", limit)
	}
	add("auth_failed_count", st.authFailed.Load())
	add("connection_rejected", st.connsDropped.Load())
	add("stale_sessions_expired", st.expired.Load())
	add("fsync_threshold_exceed_count", st.slowSyncs.Load())
	add("fsynctime", st.syncs.summary())
	add("snapshottime", st.checkpoints.summary())
	return values
}

func (l *latency) summary() Summary {
	low, avg, high := l.read()
	n, sum := l.sum()
	return Summary{Count: n, Sum: sum, Min: low, Max: high, Avg: round(avg)}
}

// round rounds to four digits, as ZooKeeper does.
func round(v float64) float64 { return math.Round(v*1e4) / 1e4 }
