package serverlist

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"unicode"

	"github.com/gozkd/gozkd/internal/memberid"
	"github.com/gozkd/gozkd/proto"
)

// anyAddress is the client host of a server line that has only a client port.
const anyAddress = "0.0.0.0"

// Role is the role of a member in the quorum.
type Role uint8

// The roles.
const (
	Participant Role = iota // votes
	Observer                // holds all data and serves clients, but never votes
)

// String returns the role as it appears in server lines.
func (r Role) String() string {
	if r == Observer {
		return "observer"
	}
	return "participant"
}

// Member is a parsed server line: a member's id and addresses. Equal lines give equal Members (==).
type Member struct {
	// ID is that of package memberid: the N of server.N, except for server.0.
	ID uint64
	// Host is the address for other members: a name, or an IP address as netip.Addr.String has it.
	Host string
	// PeerPort is the port that members connect to.
	PeerPort int
	// ElectionPort is kept for programs that read the line; gozkd does not use it. 0 means none.
	ElectionPort int
	// More holds the other addresses of a member that has several, as Value prints them, without
	// the role: "host:peerPort:electionPort|...". The addresses are in the order of their hosts,
	// and that of Host, PeerPort and ElectionPort is the first.
	More string
	// Role is Participant unless the line names a role.
	Role Role
	// ClientHost is the address on which the member listens for clients, in the form of Host.
	// "0.0.0.0" means all addresses. ClientHost is empty if and only if ClientPort is 0.
	ClientHost string
	// ClientPort is the port for clients; 0 means none.
	ClientPort int
	// SecureHost and SecurePort are like ClientHost and ClientPort, for clients with TLS. They come
	// from files and from ZooKeeper 3.10: no member of an ensemble of gozkd has them in the state.
	SecureHost string
	SecurePort int
}

// Error is returned for an invalid server line.
type Error struct {
	// Key and Value are the two parts of the line; empty if the lines are right one by one.
	Key, Value string
	// Problem describes the fault, for example "there is no peer port".
	Problem string

	code proto.ErrCode // the answer to a reconfig request with this line
	ours bool          // ZooKeeper would take the line
}

// Error returns the line and the problem.
func (e *Error) Error() string {
	if e.Key == "" {
		return "members: " + e.Problem
	}
	return fmt.Sprintf("members: %s=%s: %s", e.Key, e.Value, e.Problem)
}

// LineFormat is the syntax of the value of a server line, for messages.
const LineFormat = "host:peerPort:electionPort[:participant|observer][;[[host:]clientPort][;[host:]secureClientPort]], IPv6 addresses in [ ], several addresses host:peerPort:electionPort separated by |"

// Parse reads a server line, such as
//
//	"server.1", "host:2888:3888:participant;0.0.0.0:2181;0.0.0.0:2281"
//
// The election port, the role and the client addresses are optional. Every error is an *Error.
// Source: ZooKeeper QuorumPeer.QuorumServer.initializeWithAddressString.
func Parse(key, value string) (Member, error) { return parse(key, value, false, true) }

// parse implements Parse. With complete, the election port and the client port are mandatory, as in
// a reconfig request. A line may have several addresses only with several.
func parse(key, value string, complete, several bool) (Member, error) {
	m, err := parseLine(key, value, complete, several)
	if err != nil {
		err.Key, err.Value = key, value
		return Member{}, err
	}
	return m, nil
}

func parseLine(key, value string, complete, several bool) (m Member, err *Error) {
	number, ok := strings.CutPrefix(key, "server.")
	if !ok {
		return m, refusal(proto.ErrBadArguments, "the key of a server line is server.N")
	}
	id, notNumber := strconv.ParseInt(number, 10, 64)
	switch {
	case notNumber != nil:
		return m, refusal(proto.ErrMarshallingError, "the id %q is not a number", number)
	case memberid.Of(id) == 0:
		err = refusal(proto.ErrBadArguments, "the id %d is not between 0 and %d", id, memberid.MaxNumber)
		err.ours = true
		return m, err
	}
	m.ID = memberid.Of(id)

	// As in Java's split, a semicolon at the end begins no further part.
	peers, clients, _ := strings.Cut(strings.TrimRight(strings.TrimSpace(value), ";"), ";")
	client, secure, _ := strings.Cut(clients, ";")
	err = m.parsePeers(peers, complete, several)
	if err == nil && client != "" {
		m.ClientHost, m.ClientPort, err = parseClient("client", client)
	}
	if err == nil && strings.TrimSpace(secure) != "" {
		m.SecureHost, m.SecurePort, err = parseClient("secure client", secure)
	}
	if err == nil && m.ClientPort == 0 && complete {
		err = refusal(proto.ErrBadArguments, "there is no client port")
	}
	return m, err
}

// parseClient parses [host:]port for clients.
func parseClient(kind, text string) (host string, port int, err *Error) {
	if !strings.Contains(text, ":") {
		text = anyAddress + ":" + text
	}
	host, fields, ok := splitAddress(text)
	if !ok || len(fields) != 1 {
		return "", 0, refusal(proto.ErrBadArguments, "the %s address is not [host:]port", kind)
	}
	port, err = parsePort(fields[0], 1, kind)
	return host, port, err
}

// parsePort parses a port from low, 0 or 1, to 65535.
func parsePort(s string, low int64, kind string) (int, *Error) {
	n, err := strconv.ParseInt(s, 10, 32)
	code := proto.ErrBadArguments
	switch {
	case err == nil && low <= n && n <= 65535:
		return int(n), nil
	case err == nil && n != 0:
		code = proto.ErrMarshallingError // as in ZooKeeper, which does not expect its exception here
	}
	return 0, refusal(code, "the %s port %q is not between %d and 65535", kind, s, low)
}

// splitAddress splits "host:a:b" into the host, in the form of Host, and the fields after it.
func splitAddress(s string) (host string, fields []string, ok bool) {
	s = strings.TrimSpace(s)
	if inner, bracket := strings.CutPrefix(s, "["); bracket {
		literal, rest, closed := strings.Cut(inner, "]")
		addr, err := netip.ParseAddr(literal)
		if !closed || err != nil || rest != "" && rest[0] != ':' || strings.ContainsFunc(literal, notInHost) {
			return "", nil, false
		}
		if rest != "" {
			fields = strings.Split(rest[1:], ":")
		}
		return addr.Unmap().String(), fields, true
	}
	fields = strings.Split(s, ":")
	host = fields[0]
	if host == "" || strings.ContainsFunc(host, notInHost) {
		return "", nil, false
	}
	if addr, err := netip.ParseAddr(host); err == nil {
		host = addr.String()
	}
	return host, fields[1:], true
}

// notInHost reports whether r is a separator in any place where server lines are written.
func notInHost(r rune) bool {
	return strings.ContainsRune(`[]/,;|=\"'#`, r) || unicode.IsSpace(r) || unicode.IsControl(r) || r == unicode.ReplacementChar
}

// ClientAddress returns the host:port for clients, or "" if the line has no client port.
func (m Member) ClientAddress() string {
	if m.ClientPort == 0 {
		return ""
	}
	return net.JoinHostPort(m.ClientHost, strconv.Itoa(m.ClientPort))
}

// Dialed returns the host:port at which a client reaches the member: on its host for other members
// if it listens on all addresses, and at a port if its line has none.
func (m Member) Dialed(port int) string {
	host := m.ClientHost
	if AllAddresses(host) {
		host = m.Host
	}
	return net.JoinHostPort(host, strconv.Itoa(cmp.Or(m.ClientPort, port)))
}

// AllAddresses reports whether a server that listens on host listens on all addresses.
func AllAddresses(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "" || err == nil && ip.IsUnspecified()
}

// ListenAddress returns where the member m of the state listens for clients: on listen, its own
// configuration's address, until m has another client address than its configured line.
func (m Member) ListenAddress(configured Member, listen string) string {
	host, port, err := net.SplitHostPort(listen)
	wanted := strconv.Itoa(m.ClientPort)
	switch {
	case err != nil, m.ClientHost == configured.ClientHost && m.ClientPort == configured.ClientPort:
		return listen
	case port == wanted && AllAddresses(host): // these include the wanted address
		return listen
	case m.ClientHost != anyAddress:
		host = m.ClientHost
	case configured.ClientPort != 0 && configured.ClientHost != anyAddress:
		host = "" // listen has the configured line's host
	}
	return net.JoinHostPort(host, wanted)
}

// Key returns "server.N".
func (m Member) Key() string { return "server." + strconv.FormatUint(memberid.Number(m.ID), 10) }

// Value returns the line without its key, as ZooKeeper prints it: with the role, sorted by host,
// and with IPv6 addresses in brackets and without "::". A missing election port is printed as 0,
// for readers that require it.
func (m Member) Value() string {
	v := address{m.Host, m.PeerPort, m.ElectionPort}.String()
	if m.More != "" {
		v += "|" + m.More
	}
	v += ":" + m.Role.String()
	if m.ClientPort != 0 {
		v += fmt.Sprintf(";%s:%d", printHost(m.ClientHost), m.ClientPort)
	} else if m.SecurePort != 0 {
		v += ";"
	}
	if m.SecurePort != 0 {
		v += fmt.Sprintf(";%s:%d", printHost(m.SecureHost), m.SecurePort)
	}
	return v
}

// String returns the line, as "server.1=host:2888:3888:participant;0.0.0.0:2181". Parse accepts it.
func (m Member) String() string { return m.Key() + "=" + m.Value() }

// printHost formats a host like java.net.InetSocketAddress.getHostString, with brackets for colons.
func printHost(host string) string {
	addr, err := netip.ParseAddr(host)
	if err != nil || addr.Is4() {
		return host
	}
	b := addr.As16()
	groups := make([]string, 8)
	for i := range groups {
		groups[i] = strconv.FormatUint(uint64(b[2*i])<<8|uint64(b[2*i+1]), 16)
	}
	text := strings.Join(groups, ":")
	if addr.Zone() != "" {
		text += "%" + addr.Zone()
	}
	return "[" + text + "]"
}
