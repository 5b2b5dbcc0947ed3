package top

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/gozkd/gozkd/internal/probe"
	"github.com/gozkd/gozkd/internal/testkit/watchdog"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server/facts"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(watchdog.Watch(m)) }

// start is the time at second 0.
var start = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// fake is a member whose counters a test sets.
type fake struct {
	Entry
	mode                          string
	version                       string
	zxid                          proto.Zxid
	asked, received               int64
	reads, writes, readMs, syncs  int64
	syncMs, outstanding, uptimeMs int64
	lag                           map[uint64]int64
	clients                       []probe.Connection
	hot                           facts.HotSpots
	err                           error
	only                          bool  // answers only srvr
	level, maxLevel               int64 // 0: of a version without levels
}

func newFake(id uint64, mode string) *fake {
	return &fake{Entry: Entry{Address: fmt.Sprintf("10.0.0.%d:2181", id), ID: id}, mode: mode, version: "3.9.5-gozkd-0.1.0", zxid: 0x100000005}
}

// sample returns the sample at a second.
func (f *fake) sample(seconds float64) Sample {
	s := Sample{Address: f.Address, At: start.Add(time.Duration(seconds * float64(time.Second))), Asked: f.asked, Err: f.err}
	if f.err != nil {
		return s
	}
	s.State = probe.State{
		Version: f.version, Mode: f.mode, Zxid: f.zxid, Received: f.received + f.asked, Sent: f.received + f.asked,
		LatencyMs: probe.Latency{Avg: 0.25, Max: 9}, Connections: int64(len(f.clients) + 1), Outstanding: f.outstanding, Znodes: 2137,
	}
	if f.only {
		denied := func(word string) error { return &probe.Error{Address: f.Address, Word: word, Err: probe.ErrNotAllowed} }
		s.MonitorErr, s.ClientsErr, s.HotErr = denied("mntr"), denied("cons"), denied("hotp")
		if !s.State.Gozkd() {
			s.HotErr = errNoHotWord
		}
		return s
	}
	number := func(n int64) string { return fmt.Sprint(n) }
	s.Monitor = probe.Monitor{
		"cnt_readlatency": number(f.reads), "sum_readlatency": number(f.readMs), "cnt_updatelatency": number(f.writes), "sum_updatelatency": "0",
		"cnt_fsynctime": number(f.syncs), "sum_fsynctime": number(f.syncMs), "uptime": number(f.uptimeMs),
		"watch_count": "12", "approximate_data_size": "240483",
	}
	if f.level != 0 {
		s.Monitor["gozkd_feature_level"], s.Monitor["gozkd_feature_level_max"] = number(f.level), number(f.maxLevel)
	}
	for id, n := range f.lag {
		s.Monitor[fmt.Sprintf("gozkd_peer_%d_lag_entries", id)] = number(n)
	}
	s.Clients, s.Hot = slices.Clone(f.clients), f.hot
	if !s.State.Gozkd() {
		s.HotErr = errNoHotWord
	}
	return s
}

// work simulates a second in which the member served clients.
func (f *fake) work(requests int64) {
	f.asked += 4
	f.received += requests
	f.reads += requests * 9 / 10
	f.writes += requests - requests*9/10
	f.readMs += requests / 5
	f.syncs += 20
	f.syncMs += 50
	f.uptimeMs += 1000
	f.zxid += proto.Zxid(requests / 10)
	for i := range f.clients {
		f.clients[i].Received += requests / int64(len(f.clients))
	}
}

// connection returns the connection number n.
func connection(n int64) probe.Connection {
	return probe.Connection{
		Client: fmt.Sprintf("10.1.0.%d:%d", n, 40000+n), Session: proto.SessionID(0x100000100000000 + n), LastOp: "GETD", TimeoutMs: 30000,
		SinceMs: start.UnixMilli() - n*90000, LatencyMs: probe.Latency{Avg: 1, Max: 5 * n}, Queued: n % 3, LastZxid: 0x100000005,
	}
}

// rosterOf returns the entries of all fakes.
func rosterOf(fakes []*fake) []Entry {
	list := make([]Entry, len(fakes))
	for i, f := range fakes {
		list[i] = f.Entry
	}
	return list
}
