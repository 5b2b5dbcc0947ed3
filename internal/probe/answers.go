package probe

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/gozkd/gozkd/internal/memberid"
	"github.com/gozkd/gozkd/internal/printable"
	"github.com/gozkd/gozkd/internal/serverlist"
	"github.com/gozkd/gozkd/internal/subtree"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server/facts"
)

// State is the answer to srvr.
type State struct {
	// Version is ZooKeeper's version line without the date, such as "3.9.5-gozkd-0.1.0". Version
	// and Mode are always short and printable.
	Version string `json:"version"`
	// LatencyMs covers the requests since the start or srst.
	LatencyMs Latency `json:"latency_ms"`
	// Received and Sent count packets since the start or srst, with four-letter words and pings.
	Received    int64 `json:"received"`
	Sent        int64 `json:"sent"`
	Connections int64 `json:"connections"`
	// Outstanding requests are not answered yet.
	Outstanding int64      `json:"outstanding"`
	Zxid        proto.Zxid `json:"-"`
	// Mode is one of package facts.
	Mode   string `json:"-"`
	Znodes int64  `json:"znodes"`
	// Archive says that the archive is closed to a gozkd, Outside why it is not a member of its
	// ensemble, Certificates which of its certificates end soon or have expired, and all of them
	// what to do; otherwise they are empty.
	Archive      string `json:"-"`
	Outside      string `json:"-"`
	Certificates string `json:"certificates,omitempty"`
}

// Latency is minimum, average and maximum, in milliseconds.
type Latency struct {
	Min int64   `json:"min"`
	Avg float64 `json:"avg"`
	Max int64   `json:"max"`
}

// Gozkd reports whether the server is a gozkd.
func (s State) Gozkd() bool { return strings.Contains(s.Version, "-gozkd-") }

// AskState asks a server for its state. ask is Asker.Ask, or a fake in tests.
func AskState(ctx context.Context, ask func(ctx context.Context, address, word string) (string, error), address string) (s State, err error) {
	answer, err := ask(ctx, address, "srvr")
	if err == nil {
		if s, err = ParseState(answer); err != nil {
			err = &Error{Address: address, Word: "srvr", Err: err}
		}
	}
	return s, err
}

// ParseState parses the answer to srvr. One without a mode, of another kind of server, is an error.
func ParseState(srvr string) (State, error) {
	var s State
	counts := map[string]*int64{
		"Received": &s.Received, "Sent": &s.Sent, "Connections": &s.Connections, "Outstanding": &s.Outstanding, "Node count": &s.Znodes,
	}
	for line := range strings.Lines(srvr) {
		key, value, _ := strings.Cut(strings.TrimRight(line, "\r\n"), ": ")
		switch key {
		case "Zookeeper version":
			s.Version, _, _ = strings.Cut(value, ",")
			s.Version = safe(s.Version)
		case "Latency min/avg/max":
			s.LatencyMs = latency(value)
		case "Zxid":
			s.Zxid = proto.Zxid(hex(value))
		case "Mode":
			s.Mode = safe(value)
		case "Archive":
			s.Archive = safeUpTo(1000, value)
		case "Membership":
			s.Outside = safeUpTo(1000, value)
		case "Certificates":
			s.Certificates = safeUpTo(1000, value)
		default:
			if count := counts[key]; count != nil {
				*count = number(value)
			}
		}
	}
	if s.Mode == "" {
		first, _, _ := strings.Cut(srvr, "\n")
		return State{}, fmt.Errorf("not a ZooKeeper server: it answered %.40q", first)
	}
	return s, nil
}

// latency parses "min/avg/max".
func latency(s string) Latency {
	low, rest, _ := strings.Cut(s, "/")
	avg, high, _ := strings.Cut(rest, "/")
	mean, _ := float(avg)
	return Latency{Min: number(low), Avg: mean, Max: number(high)}
}

func number(s string) int64 {
	n, _ := strconv.ParseInt(s, 10, 64)
	return n
}

func float(s string) (float64, bool) {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return 0, false
	}
	return v, true
}

// safe makes text from a server safe for a table cell: it might move the cursor or be very long.
func safe(s string) string { return safeUpTo(64, s) }

// safeUpTo is safe with another limit, in characters.
func safeUpTo(most int, s string) string {
	s = printable.Dotted(s[:min(len(s), 4*most)])
	if runes := []rune(s); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return s
}

// hex parses a number with 0x, such as a zxid or a session id.
func hex(s string) uint64 {
	n, _ := strconv.ParseUint(strings.TrimPrefix(s, "0x"), 16, 64)
	return n
}

// Monitor is the answer to mntr or dirs: values by key, without the prefix zk_.
type Monitor map[string]string

// ParseMonitor parses the answer to mntr.
func ParseMonitor(mntr string) Monitor { return parseValues(mntr, "zk_", "\t") }

// ParseDirs parses the answer to dirs.
func ParseDirs(dirs string) Monitor { return parseValues(dirs, "", ": ") }

func parseValues(answer, prefix, separator string) Monitor {
	m := make(Monitor)
	for line := range strings.Lines(answer) {
		key, value, ok := strings.Cut(strings.TrimRight(line, "\r\n"), separator)
		if key, ours := strings.CutPrefix(key, prefix); ok && ours {
			m[key] = value
		}
	}
	return m
}

// Int returns an integer value. ZooKeeper prints some of them as 12.0.
func (m Monitor) Int(key string) (int64, bool) {
	v, ok := m.Float(key)
	return int64(v), ok
}

// Float returns a finite value.
func (m Monitor) Float(key string) (float64, bool) { return float(m[key]) }

// WhyReadOnly returns why a server that answers reads takes no writes.
func (m Monitor) WhyReadOnly() string {
	if lag, ok := m.Float("gozkd_standby_lag_seconds"); ok {
		return fmt.Sprintf("it is a standby, which has all that its archive had %.1f s ago", lag)
	}
	return "it is not part of a quorum"
}

// DataStatus returns the sentence with which the first of several gozkds that has one says that the
// data are near their limit, or "".
func DataStatus(answers []Monitor) string {
	for _, m := range answers {
		if text := m["gozkd_data_status"]; text != "" {
			return safeUpTo(1000, text)
		}
	}
	return ""
}

// Kinds asks a gozkd whose whitelist has the word kind which znodes are containers, and which have
// a TTL, for a client with a chroot.
func (a Asker) Kinds(ctx context.Context, address, chroot string) (subtree.Kinds, error) {
	a.MaxBytes = 1 << 30 // about ten million of them
	answer, err := a.Ask(ctx, address, "kind")
	if err != nil {
		return nil, err
	}
	return subtree.ParseKinds(answer, chroot)
}

// Settings is the part of the answer to conf about the server's identity and the members.
type Settings struct {
	// ServerID is that of package memberid; 0 for a standalone server.
	ServerID uint64
	// ClientPort is 0 if the answer has no client port.
	ClientPort int
	// SecurePort is the port for TLS only; 0 if the answer has none.
	SecurePort int
	// Members is empty for a standalone server.
	Members serverlist.Set
}

// ParseSettings parses the answer to conf, or the data of /zookeeper/config, which has only the
// members. It skips server lines that serverlist.Parse rejects, such as those with two addresses.
func ParseSettings(conf string) Settings {
	var s Settings
	for key, value := range serverlist.Lines(conf) {
		switch {
		case key == "serverId":
			if number, err := strconv.ParseUint(value, 10, 64); err == nil {
				s.ServerID = memberid.Of(number)
			}
		case key == "clientPort":
			s.ClientPort = int(max(0, number(value)))
		case key == "secureClientPort":
			s.SecurePort = int(max(0, number(value)))
		case strings.HasPrefix(key, "server."):
			if m, err := serverlist.Parse(key, value); err == nil {
				s.Members = s.Members.With(m)
			}
		}
	}
	if len(s.Members) == 0 { // ZooKeeper says serverId=0 then
		s.ServerID = 0
	}
	return s
}

// HotWord is gozkd's word for the paths and clients with the most requests. ZooKeeper closes the
// connection on it and logs a warning.
const HotWord = "hotp"

// ParseHot parses the answer to hotp.
func ParseHot(hotp string) (facts.HotSpots, error) {
	var h facts.HotSpots
	if err := json.Unmarshal([]byte(hotp), &h); err != nil {
		return h, fmt.Errorf("%s: not JSON: %w", HotWord, err)
	}
	// Sums of rates must be finite: JSON has no other numbers.
	const most = 1e15
	ok := h.Window >= 0 && h.Window <= most
	for _, p := range h.Paths {
		ok = ok && min(p.Reads, p.Writes) >= 0 && max(p.Reads, p.Writes) <= most
	}
	for _, c := range h.Clients {
		ok = ok && min(c.Reads, c.Writes) >= 0 && max(c.Reads, c.Writes) <= most
	}
	if !ok {
		return h, fmt.Errorf("%s contains impossible rates", HotWord)
	}
	return h, nil
}

// PeerLinks returns how many connections a member has to and from the other members, and how many
// of them use TLS. A server alone, and one of a version without TLS between servers, has none.
func (m Monitor) PeerLinks() (tls, all int64) {
	for key := range m {
		rest, ok := strings.CutPrefix(key, "gozkd_peer_")
		if !ok || !strings.HasSuffix(rest, "_tls") {
			continue
		}
		n, ok := m.Int(key)
		if ok {
			all++
			tls += min(max(n, 0), 1)
		}
	}
	return tls, all
}

// Connection is a line of cons.
type Connection struct {
	// Client is host:port.
	Client string
	// Session is 0 if the connection has no session, for example that of a four-letter word.
	Session proto.SessionID
	// Queued requests are not answered yet. Received and Sent count packets since crst.
	Queued, Received, Sent int64
	// LastOp is ZooKeeper's abbreviation of the last operation, such as GETD.
	LastOp string
	// SinceMs is when the connection was opened, in Unix milliseconds of the server's clock.
	SinceMs   int64
	TimeoutMs int64
	LastZxid  proto.Zxid
	LatencyMs Latency
}

// ParseConnections parses the answer to cons. It skips an incomplete line of a truncated answer.
func ParseConnections(cons string) []Connection {
	var conns []Connection
	for line := range strings.Lines(cons) {
		if c, ok := parseConnection(strings.TrimSpace(line)); ok {
			conns = append(conns, c)
		}
	}
	return conns
}

// parseConnection parses "/127.0.0.1:4312[1](queued=0,recved=2,sent=2,sid=0x1,…)".
func parseConnection(line string) (Connection, bool) {
	line, whole := strings.CutSuffix(line, ")")
	address, pairs, ok := strings.Cut(line, "](") // an address with a zone may contain brackets, but not this sequence
	bracket := strings.LastIndexByte(address, '[')
	if !whole || !ok || bracket < 0 {
		return Connection{}, false
	}
	c := Connection{Client: safe(clientAddress(address[:bracket]))}
	numbers := map[string]*int64{
		"queued": &c.Queued, "recved": &c.Received, "sent": &c.Sent, "est": &c.SinceMs, "to": &c.TimeoutMs,
		"minlat": &c.LatencyMs.Min, "maxlat": &c.LatencyMs.Max,
	}
	for pair := range strings.SplitSeq(pairs, ",") {
		key, value, _ := strings.Cut(pair, "=")
		switch key {
		case "sid":
			c.Session = proto.SessionID(hex(value))
		case "lop":
			c.LastOp = safe(value)
		case "lzxid":
			c.LastZxid = proto.Zxid(hex(value))
		case "avglat":
			c.LatencyMs.Avg = float64(number(value))
		default:
			if n := numbers[key]; n != nil {
				*n = number(value)
			}
		}
	}
	return c, true
}

// clientAddress converts Java's "host/1.2.3.4:5" and "/0:0:0:0:0:0:0:1:5" and gozkd's "/[::1]:5" to
// Go's form.
func clientAddress(s string) string {
	s = s[strings.IndexByte(s, '/')+1:]
	i := strings.LastIndexByte(s, ':')
	if i < 0 {
		return s
	}
	host := strings.Trim(s[:i], "[]")
	if ip := net.ParseIP(host); ip != nil {
		host = ip.String()
	}
	return net.JoinHostPort(host, s[i+1:])
}

// Roles of a Peer, beside [facts.Leader].
const (
	peerInStep    = "in step"
	peerBehind    = "behind"    // connected, but not in step with the leader
	peerConnected = "connected" // and the leader gave no answer
	PeerCutOff    = "cut off"   // no member that answered can send messages to it
	peerUnknown   = "unknown"
)

// Peer is another member, as the answers to mntr of some members describe it. Only gozkd tells it.
type Peer struct {
	ID   uint64 `json:"id"` // its number
	Role string `json:"role"`
	// Lag is in log entries; nil unless the leader answered and has heard from the peer.
	Lag *int64 `json:"lag,omitempty"`
	// Observer: it does not vote. Only OtherPeers sets it, if the servers told it.
	Observer bool `json:"-"`
}

// Up reports whether the peer serves, as far as the others can tell.
func (p Peer) Up() bool {
	return p.Role == facts.Leader || p.Role == peerInStep || p.Role == peerConnected
}

// Unknown reports whether the answers tell nothing.
func (p Peer) Unknown() bool { return p.Role == peerUnknown }

// PeerOf returns the description of the member with an id in the answers. Of leaders that answers
// name, that of the newest term counts.
func PeerOf(id uint64, answers []Monitor) Peer {
	p := Peer{ID: memberid.Number(id), Role: peerUnknown}
	leader, newest := int64(-1), int64(-1)
	reached, judged := false, ""
	for _, m := range answers {
		of := func(name string) (int64, bool) { return m.Int(fmt.Sprintf("gozkd_peer_%d_%s", p.ID, name)) }
		if connected, ok := of("connected"); ok {
			p.Role, reached = PeerCutOff, reached || connected > 0
		}
		if inStep, ok := of("in_step"); ok {
			judged = map[bool]string{true: peerInStep, false: peerBehind}[inStep > 0]
		}
		if lag, ok := of("lag_entries"); ok {
			p.Lag = &lag
		}
		to, known := m.Int("gozkd_leader_id")
		if term, ok := m.Int("gozkd_term"); ok && known && to >= 0 && term > newest {
			leader, newest = to, term
		}
	}
	switch {
	case leader >= 0 && memberid.Of(leader) == id:
		p.Role = facts.Leader
	case reached:
		p.Role = cmp.Or(judged, peerConnected)
	}
	return p
}

// OtherPeers returns the members that were not asked: every answer calls them a peer. silent has
// the addresses of servers that gave no answer, and so no number. A member that settings have there
// is left out. The result is empty if each may be one of the rest.
func OtherPeers(answers []Monitor, silent []string, settings Settings) []Peer {
	others, rest, observers := []Peer{}, len(silent), settings.Members.Observers()
	allVoters := slices.ContainsFunc(answers, func(m Monitor) bool {
		size, known := m.Int("quorum_size")
		connected, counted := m.Int("gozkd_voters_connected")
		return known && counted && connected == size
	})
	for number := 0; number <= memberid.MaxNumber && len(answers) > 0; number++ {
		key, all := fmt.Sprintf("gozkd_peer_%d_connected", number), true
		for _, m := range answers {
			all = all && m[key] != ""
		}
		if !all {
			continue
		}
		id := memberid.Of(number)
		if m, ok := settings.Members.Get(id); ok && slices.Contains(silent, m.Dialed(settings.ClientPort)) {
			rest--
			continue
		}
		p := PeerOf(id, answers)
		p.Observer = slices.Contains(observers, id) || allVoters && p.Role == PeerCutOff
		others = append(others, p)
	}
	if len(others) <= rest {
		return []Peer{}
	}
	return others
}
