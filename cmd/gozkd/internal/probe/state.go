package probe

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"

	"github.com/gozkd/gozkd/proto"
)

// State is what srvr says.
type State struct {
	// Version is ZooKeeper's version line without the date: "3.9.5-gozkd-0.1.0". It and Mode are printable and short, whatever was answered.
	Version string
	// LatencyMs is that of requests since the start or srst.
	LatencyMs Latency
	// Received and Sent count packets since then, of words and pings too.
	Received, Sent int64
	Connections    int64
	// Outstanding are requests that were received and not answered.
	Outstanding int64
	Zxid        proto.Zxid
	// Mode is standalone, leader, follower, observer or read-only.
	Mode   string
	Znodes int64
}

// Latency is minimum, average and maximum, in milliseconds.
type Latency struct {
	Min int64   `json:"min"`
	Avg float64 `json:"avg"`
	Max int64   `json:"max"`
}

// ModeReadOnly is the mode of a ZooKeeper without a quorum that lets clients read.
const ModeReadOnly = "read-only"

// Modes of servers that belong to a quorum, or need none.
const (
	ModeStandalone = "standalone"
	ModeLeader     = "leader"
	ModeFollower   = "follower"
	ModeObserver   = "observer"
)

// Gozkd reports whether the server is ours.
func (s State) Gozkd() bool { return strings.Contains(s.Version, "-gozkd-") }

// ParseState reads an answer to srvr. It is an error if there is no mode in it: then it comes from something else than a server.
func ParseState(srvr string) (State, error) {
	var s State
	for line := range strings.Lines(srvr) {
		key, value, _ := strings.Cut(strings.TrimRight(line, "\r\n"), ": ")
		switch key {
		case "Zookeeper version":
			s.Version, _, _ = strings.Cut(value, ",")
			s.Version = printable(s.Version)
		case "Latency min/avg/max":
			s.LatencyMs = latency(value)
		case "Received":
			s.Received = number(value)
		case "Sent":
			s.Sent = number(value)
		case "Connections":
			s.Connections = number(value)
		case "Outstanding":
			s.Outstanding = number(value)
		case "Zxid":
			s.Zxid = proto.Zxid(hex(value))
		case "Mode":
			s.Mode = printable(value)
		case "Node count":
			s.Znodes = number(value)
		}
	}
	if s.Mode == "" {
		first, _, _ := strings.Cut(srvr, "\n")
		return State{}, fmt.Errorf("no ZooKeeper: it answered %.40q", first)
	}
	return s, nil
}

// latency reads "min/avg/max".
func latency(s string) Latency {
	low, rest, _ := strings.Cut(s, "/")
	avg, high, _ := strings.Cut(rest, "/")
	mean, _ := float(avg)
	return Latency{Min: number(low), Avg: mean, Max: number(high)}
}

// number reads a decimal number; what is none counts nothing.
func number(s string) int64 {
	n, _ := strconv.ParseInt(s, 10, 64)
	return n
}

// float reads a finite number: no rate or mean is another one, and JSON has no text for it.
func float(s string) (float64, bool) {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return 0, false
	}
	return v, true
}

// printable makes a name that a server says fit for a cell of a table: it might move the cursor, or be megabytes long.
func printable(s string) string {
	const most = 64
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '·'
		}
		return r
	}, s[:min(len(s), 4*most)])
	if runes := []rune(s); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return s
}

// hex reads a number with 0x in front, such as a zxid or a session id.
func hex(s string) uint64 {
	n, _ := strconv.ParseUint(strings.TrimPrefix(s, "0x"), 16, 64)
	return n
}
