package facts

import (
	"iter"
	"math"
	"strconv"
	"strings"

	"github.com/gozkd/gozkd/internal/memberid"
)

// Value is a measured or counted property of a server. The mntr word, the admin commands and the
// metrics all consist of these.
type Value struct {
	// Name is ZooKeeper's key of mntr without the prefix zk_, such as znode_count, or a name of
	// ours, which begins with gozkd_.
	Name string
	// Peer is the other member that the value is about, as in MemberStatus.ID, or 0. The names of
	// such values begin with gozkd_peer_.
	Peer int
	// Key distinguishes values with the same Name: the first element of a path (…_per_namespace),
	// the operation (gozkd_request_duration_seconds) or the stage
	// (gozkd_write_stage_duration_seconds). It is empty if the Name is unique.
	Key string
	// Is is an int64, a float64, a string, a Summary or a Histogram.
	Is any
}

// Values is a list of values in the order of the mntr word.
type Values []Value

// Add appends a value with a unique name.
func (l *Values) Add(name string, is any) { *l = append(*l, Value{Name: name, Is: is}) }

// AddKey appends a value with a key.
func (l *Values) AddKey(name, key string, is any) {
	*l = append(*l, Value{Name: name, Key: key, Is: is})
}

// AddPeer appends a value about another member.
func (l *Values) AddPeer(name string, peer uint64, is any) {
	*l = append(*l, Value{Name: name, Peer: int(peer), Is: is})
}

// peerPrefix begins the names of values about another member. In mntr the member's number follows
// the prefix.
const peerPrefix = "gozkd_peer_"

// percentiles are those of ZooKeeper's mntr.
var percentiles = [...]struct {
	prefix string
	q      float64
}{{"p50_", 0.5}, {"p95_", 0.95}, {"p99_", 0.99}, {"p999_", 0.999}}

// Lines ranges over the lines of mntr that the value makes, without the prefix zk_: one, or five or
// nine for a Summary or a Histogram. Their values are int64, float64 or string.
func (v Value) Lines() iter.Seq2[string, any] {
	return func(yield func(string, any) bool) {
		name := v.Name
		if v.Key != "" {
			name = v.Key + "_" + name
		}
		switch is := v.Is.(type) {
		case Summary:
			is.lines(name, yield)
		case Histogram:
			is.lines(name, yield)
		default:
			if v.Peer != 0 {
				name = peerPrefix + strconv.Itoa(memberid.Number(v.Peer)) + "_" + strings.TrimPrefix(name, peerPrefix)
			}
			yield(name, v.Is)
		}
	}
}

// Round rounds to four digits after the point, as ZooKeeper does.
func Round(v float64) float64 { return math.Round(v*1e4) / 1e4 }
