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
	// Key tells apart values with the same Name: the first element of paths (…_per_namespace), the op
	// (gozkd_request_duration_seconds) or the stage (gozkd_write_stage_duration_seconds). Empty: there is one value of that name.
	Key string
	// Is is an int64, a float64, a string, a Summary or a Histogram.
	Is any
}

// Summary is what was measured of something that happens again and again, since the start or the srst word. Times are
// milliseconds.
type Summary struct {
	Count, Sum, Min, Max int64
	Avg                  float64

	detailed bool
	unit     float64
	values   distribution
}

// Detailed reports whether ZooKeeper tells percentiles of this one.
func (s Summary) Detailed() bool { return s.detailed }

// Quantile returns the value that the part q of all values is below, 0 ≤ q ≤ 1, to an eighth of it; NaN if there are none.
func (s Summary) Quantile(q float64) float64 {
	if s.values.count == 0 {
		return math.NaN()
	}
	return s.values.quantile(q) / s.unit
}

// Histogram is a Summary with the counts by size. Names that end in _seconds are of durations.
type Histogram struct {
	values distribution
	unit   float64 // how many of what is counted make one of what is told
	powers []int   // of two: the bounds
}

// Count returns how many values there are.
func (h Histogram) Count() uint64 { return uint64(h.values.count) }

// Sum returns their sum.
func (h Histogram) Sum() float64 { return h.values.sum / h.unit }

// Buckets returns how many values are below each of some bounds, which are always the same.
func (h Histogram) Buckets() map[float64]uint64 {
	buckets := make(map[float64]uint64, len(h.powers))
	for _, p := range h.powers {
		buckets[float64(int64(1)<<p)/h.unit] = h.values.below(p)
	}
	return buckets
}

// Quantile returns the value that the part q of all values is below, 0 ≤ q ≤ 1, to an eighth of it; NaN if there are none.
func (h Histogram) Quantile(q float64) float64 {
	if h.values.count == 0 {
		return math.NaN()
	}
	return h.values.quantile(q) / h.unit
}

// peerPrefix is that of the names of values about another member, whose number follows it in mntr.
const peerPrefix = "gozkd_peer_"

// percentiles are ZooKeeper's in mntr.
var percentiles = [...]struct {
	prefix string
	q      float64
}{{"p50_", 0.5}, {"p95_", 0.95}, {"p99_", 0.99}, {"p999_", 0.999}}

// Lines ranges over the lines of mntr that the value makes, without the zk_ in front: one, or five or nine of a Summary or a Histogram. What
// they say is an int64, a float64 or a string.
func (v Value) Lines() iter.Seq2[string, any] {
	return func(yield func(string, any) bool) {
		name := v.Name
		if v.Key != "" {
			name = v.Key + "_" + name
		}
		switch is := v.Is.(type) {
		case Summary:
			if !(yield("avg_"+name, is.Avg) && yield("min_"+name, is.Min) && yield("max_"+name, is.Max) &&
				yield("cnt_"+name, is.Count) && yield("sum_"+name, is.Sum)) || !is.detailed {
				return
			}
			for _, p := range percentiles {
				if !yield(p.prefix+name, int64(math.Round(is.values.quantile(p.q)/is.unit))) {
					return
				}
			}
		case Histogram:
			d := &is.values
			if !(yield("avg_"+name, d.mean()/is.unit) && yield("min_"+name, float64(d.min())/is.unit) && yield("max_"+name, float64(d.max())/is.unit) &&
				yield("cnt_"+name, d.count) && yield("sum_"+name, is.Sum())) {
				return
			}
			for _, p := range percentiles {
				if !yield(p.prefix+name, d.quantile(p.q)/is.unit) {
					return
				}
			}
		default:
			if v.Peer != 0 {
				name = peerPrefix + strconv.Itoa(v.Peer) + "_" + strings.TrimPrefix(name, peerPrefix)
			}
			yield(name, v.Is)
		}
	}
}

// Monitor returns what the mntr word tells, in its order. Before Start has opened the data, and when the server stopped, it returns nil. A
// server that waits for a leader has values, though it does not answer the word. The caller owns the result.
//
// What each of ZooKeeper's keys means here, and which are missing and why, is in docs/reference/monitoring.md.
func (s *Server) Monitor() []Value {
	if !s.accepting.Load() {
		return nil
	}
	list := values(make([]Value, 0, 256))
	s.monitorState(&list)
	if !s.alone() {
		list = s.monitorMember(list)
	}
	if open, limit, ok := fileDescriptors(); ok {
		list.add("open_file_descriptor_count", open)
		list.add("max_file_descriptor_count", limit)
	}
	s.monitorCounts(&list)
	s.monitorTimes(&list)
	s.monitorNamespaces(&list)
	s.monitorOwn(&list)
	return list
}

// values is a list of what Monitor returns.
type values []Value

func (l *values) add(name string, is any) { *l = append(*l, Value{Name: name, Is: is}) }

func (l *values) addOf(name, key string, is any) {
	*l = append(*l, Value{Name: name, Key: key, Is: is})
}

// monitorState adds what the server is at this moment, and the values that stand beside it in ZooKeeper's mntr.
func (s *Server) monitorState(l *values) {
	st, f := &s.stats, s.facts()
	low, avg, high := st.latencies()
	l.add("version", s.versionLine())
	l.add("server_state", s.mode())
	l.add("avg_latency", round(avg))
	l.add("max_latency", high)
	l.add("min_latency", low)
	l.add("packets_received", st.received.Load())
	l.add("packets_sent", st.sent.Load())
	l.add("num_alive_connections", int64(s.numConns()))
	l.add("outstanding_requests", int64(s.outstanding.outstanding()))
	l.add("znode_count", int64(f.znodes))
	l.add("watch_count", int64(s.watches.Len()))
	l.add("ephemerals_count", int64(f.ephemeral))
	l.add("approximate_data_size", f.dataBytes)
	l.add("global_sessions", int64(f.sessions))
	l.add("local_sessions", int64(0))
	last, low, high := st.responses.read()
	l.add("last_client_response_size", last)
	l.add("min_client_response_size", low)
	l.add("max_client_response_size", high)
	l.add("uptime", max(0, s.cfg.Now().Sub(s.started).Milliseconds()))
}

// round rounds to four digits, as ZooKeeper does.
func round(v float64) float64 { return math.Round(v*1e4) / 1e4 }
