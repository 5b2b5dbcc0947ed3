package serverlist

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"unicode"

	"github.com/gozkd/gozkd/proto"
)

// MaxID is the largest id of a member; the smallest is 1. The id is the top byte of the session ids that a member
// makes, and an owner of a node that begins with 0xFF is no session but a time to live.
// Source: spec section 6.2.
const MaxID = 254

// anyAddress is the client host of a member that named only a port.
const anyAddress = "0.0.0.0"

// Role says whether a member counts for the quorum.
type Role uint8

// The roles.
const (
	Participant Role = iota // votes
	Observer                // has all data, serves clients, never votes
)

// String returns the role as server lines have it.
func (r Role) String() string {
	if r == Observer {
		return "observer"
	}
	return "participant"
}

// Member is one server line: who a member is and where it can be reached. Members with equal lines are equal (==).
type Member struct {
	// ID is 1 to MaxID.
	ID uint64
	// Host is a name, or an IP address in the form of netip.Addr.String, where members reach this one. No brackets.
	Host string
	// PeerPort is the port that members connect to.
	PeerPort int
	// ElectionPort is kept for those who read the line and has no use here; 0 means that none was named.
	ElectionPort int
	// Role is Participant where the line is silent.
	Role Role
	// ClientHost is where the member listens for clients, in the form of Host, "0.0.0.0" for all addresses. It is
	// empty if and only if ClientPort is 0.
	ClientHost string
	// ClientPort is the port for clients; 0 means that the line names none.
	ClientPort int
}

// Error says why a server line can't be used.
type Error struct {
	// Key and Value are the line.
	Key, Value string
	// What is wrong with it, such as "there is no peer port".
	What string

	code proto.ErrCode // what a reconfig request with this line is answered
}

// Error returns the line and what is wrong with it.
func (e *Error) Error() string { return fmt.Sprintf("members: %s=%s: %s", e.Key, e.Value, e.What) }

// Form is what the value of a server line looks like, for messages.
const Form = "host:peerPort:electionPort[:participant|observer][;[host:]clientPort], IPv6 addresses in [ ]"

// Parse reads a server line, such as
//
//	"server.1", "host:2888:3888:participant;0.0.0.0:2181"
//
// The election port, the role and the client address may be missing. An error is an *Error.
// Source: spec section 13.2; ZooKeeper QuorumPeer.QuorumServer.initializeWithAddressString.
func Parse(key, value string) (Member, error) { return parse(key, value, false) }

// parse is Parse; with all, the election port and the client port must be there, as a reconfig request wants it.
func parse(key, value string, all bool) (Member, error) {
	bad := func(code proto.ErrCode, format string, args ...any) (Member, error) {
		return Member{}, &Error{Key: key, Value: value, What: fmt.Sprintf(format, args...), code: code}
	}
	number, ok := strings.CutPrefix(key, "server.")
	if !ok {
		return bad(proto.ErrBadArguments, "the key of a server line is server.N")
	}
	var m Member
	id, err := strconv.ParseInt(number, 10, 64)
	switch {
	case err != nil:
		return bad(proto.ErrMarshallingError, "the id %q is not a number", number)
	case id < 1 || id > MaxID:
		return bad(proto.ErrBadArguments, "the id %d is not one of 1 to %d", id, MaxID)
	}
	m.ID = uint64(id)

	peers, client, hasClient := strings.Cut(strings.TrimSpace(value), ";")
	if strings.Contains(peers, "|") {
		return bad(proto.ErrBadArguments, "several addresses for one server are not supported: name one")
	}
	host, fields, ok := splitAddress(peers)
	switch {
	case !ok:
		return bad(proto.ErrBadArguments, "the host can't be read: a name, an IPv4 address, or an IPv6 address in [ ]")
	case len(fields) == 0:
		return bad(proto.ErrBadArguments, "there is no peer port")
	case len(fields) == 1 && all:
		return bad(proto.ErrBadArguments, "there is no election port")
	case len(fields) > 3:
		return bad(proto.ErrBadArguments, "there is too much after the host")
	}
	m.Host = host
	var code proto.ErrCode
	if m.PeerPort, code = parsePort(fields[0]); m.PeerPort == 0 {
		return bad(cmp.Or(code, proto.ErrBadArguments), "the peer port %q is not one of 1 to 65535", fields[0])
	}
	if len(fields) > 1 {
		if m.ElectionPort, code = parsePort(fields[1]); code != proto.OK {
			return bad(code, "the election port %q is not one of 0 to 65535", fields[1])
		}
		if m.ElectionPort == m.PeerPort {
			return bad(proto.ErrBadArguments, "peer port and election port are both %d", m.PeerPort)
		}
	}
	if len(fields) > 2 {
		switch strings.ToLower(strings.TrimSpace(fields[2])) {
		case "participant":
		case "observer":
			m.Role = Observer
		default:
			return bad(proto.ErrBadArguments, "the role %q is neither participant nor observer", fields[2])
		}
	}
	if !hasClient {
		if all {
			return bad(proto.ErrBadArguments, "there is no client port")
		}
		return m, nil
	}
	client, secure, _ := strings.Cut(client, ";")
	if strings.TrimSpace(secure) != "" {
		return bad(proto.ErrBadArguments, "there is no TLS yet for a secure client port")
	}
	if !strings.Contains(client, ":") {
		client = anyAddress + ":" + client
	}
	host, fields, ok = splitAddress(client)
	if !ok || len(fields) != 1 {
		return bad(proto.ErrBadArguments, "the client address is not [host:]port")
	}
	m.ClientHost = host
	if m.ClientPort, code = parsePort(fields[0]); m.ClientPort == 0 {
		return bad(cmp.Or(code, proto.ErrBadArguments), "the client port %q is not one of 1 to 65535", fields[0])
	}
	return m, nil
}

// parsePort reads a port from 0 to 65535, or returns the code that ZooKeeper answers to it.
func parsePort(s string) (int, proto.ErrCode) {
	n, err := strconv.ParseInt(s, 10, 32)
	switch {
	case err != nil:
		return 0, proto.ErrBadArguments
	case n < 0 || n > 65535:
		return 0, proto.ErrMarshallingError // NB: ZooKeeper's own slip, the exception is not one that it expects
	}
	return int(n), proto.OK
}

// splitAddress splits "host:a:b" into the host, in the form of Member.Host, and the rest.
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

// notInHost holds for what would end a host, a line or a list in one of the places where lines stand.
func notInHost(r rune) bool {
	return strings.ContainsRune(`[]/,;|=\"'#`, r) || unicode.IsSpace(r) || unicode.IsControl(r) || r == unicode.ReplacementChar
}

// PeerAddress returns host:port for other members.
func (m Member) PeerAddress() string { return net.JoinHostPort(m.Host, strconv.Itoa(m.PeerPort)) }

// ClientAddress returns host:port for clients, or "" if the line names none.
func (m Member) ClientAddress() string {
	if m.ClientPort == 0 {
		return ""
	}
	return net.JoinHostPort(m.ClientHost, strconv.Itoa(m.ClientPort))
}

// Key returns "server.N".
func (m Member) Key() string { return "server." + strconv.FormatUint(m.ID, 10) }

// Value returns the line without its key, as ZooKeeper prints it: with the role, IPv6 addresses in brackets and
// without "::". An election port that was not named is 0, for readers that want three fields.
func (m Member) Value() string {
	v := fmt.Sprintf("%s:%d:%d:%s", printHost(m.Host), m.PeerPort, m.ElectionPort, m.Role)
	if m.ClientPort != 0 {
		v += fmt.Sprintf(";%s:%d", printHost(m.ClientHost), m.ClientPort)
	}
	return v
}

// String returns the line, "server.1=host:2888:3888:participant;0.0.0.0:2181". Parse reads it back as m.
func (m Member) String() string { return m.Key() + "=" + m.Value() }

// printHost writes a host as java.net.InetSocketAddress.getHostString, in brackets where it has colons.
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
