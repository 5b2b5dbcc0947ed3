package serverlist

import (
	"fmt"
	"net"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/gozkd/gozkd/proto"
)

// address is where a member is reached by other members.
type address struct {
	host               string // in the form of Member.Host
	peerPort, election int
}

func (a address) String() string {
	return fmt.Sprintf("%s:%d:%d", printHost(a.host), a.peerPort, a.election)
}

// AddressSeparator stands between the addresses of a member that has several.
const AddressSeparator = "|"

// parsePeers parses the part of a server line that is for other members. Source: ZooKeeper
// QuorumPeer.QuorumServer.initializeWithAddressString.
func (m *Member) parsePeers(text string, complete, several bool) *Error {
	parts := strings.Split(strings.TrimRight(text, AddressSeparator), AddressSeparator)
	if len(parts) > 1 && !several {
		return refusal(proto.ErrBadArguments, "several addresses for one server need multiAddress.enabled=true")
	}
	var all []address
	roles := make(map[string]bool)
	for _, part := range parts {
		a, role, err := parseAddress(part, complete)
		if err != nil {
			return err
		}
		if role != "" {
			roles[role] = true
		}
		if !slices.ContainsFunc(all, func(b address) bool { return b.host == a.host && b.peerPort == a.peerPort }) {
			all = append(all, a)
		}
	}
	if len(roles) > 1 {
		return refusal(proto.ErrBadArguments, "the addresses have different roles")
	}
	if roles[Observer.String()] {
		m.Role = Observer
	}
	sort.SliceStable(all, func(i, j int) bool {
		return strings.Trim(printHost(all[i].host), "[]") < strings.Trim(printHost(all[j].host), "[]")
	})
	m.Host, m.PeerPort, m.ElectionPort = all[0].host, all[0].peerPort, all[0].election
	more := make([]string, 0, len(all)-1)
	for _, a := range all[1:] {
		more = append(more, a.String())
	}
	m.More = strings.Join(more, AddressSeparator)
	return nil
}

// parseAddress parses host:peerPort:electionPort:role. The role is empty if there is none.
func parseAddress(text string, complete bool) (a address, role string, err *Error) {
	host, fields, ok := splitAddress(text)
	switch {
	case !ok:
		return a, "", refusal(proto.ErrBadArguments, "the host is neither a name, an IPv4 address, nor an IPv6 address in [ ]")
	case len(fields) == 0:
		return a, "", refusal(proto.ErrBadArguments, "there is no peer port")
	case len(fields) == 1 && complete:
		return a, "", refusal(proto.ErrBadArguments, "there is no election port")
	case len(fields) > 3:
		return a, "", refusal(proto.ErrBadArguments, "there is too much after the host")
	}
	a.host = host
	if a.peerPort, err = parsePort(fields[0], 1, "peer"); err != nil {
		return a, "", err
	}
	if len(fields) > 1 {
		if a.election, err = parsePort(fields[1], 0, "election"); err != nil {
			return a, "", err
		}
		if a.election == a.peerPort {
			return a, "", refusal(proto.ErrBadArguments, "the peer port and the election port are both %d", a.peerPort)
		}
	}
	if len(fields) > 2 {
		role = strings.ToLower(strings.TrimSpace(fields[2]))
		if role != Participant.String() && role != Observer.String() {
			return a, "", refusal(proto.ErrBadArguments, "the role %q is neither participant nor observer", fields[2])
		}
	}
	return a, role, nil
}

func (m Member) peers() []address {
	all := []address{{m.Host, m.PeerPort, m.ElectionPort}}
	if m.More == "" {
		return all
	}
	for part := range strings.SplitSeq(m.More, AddressSeparator) {
		a, _, err := parseAddress(part, true)
		if err != nil {
			panic(fmt.Sprintf("serverlist: %s has the further address %q: %s", m.Key(), part, err.Problem)) // only parsePeers sets it
		}
		all = append(all, a)
	}
	return all
}

// PeerHosts returns the hosts of the addresses for other members.
func (m Member) PeerHosts() []string {
	var hosts []string
	for _, a := range m.peers() {
		hosts = append(hosts, a.host)
	}
	return hosts
}

// PeerAddress returns the host:port for other members. Several are separated by AddressSeparator.
func (m Member) PeerAddress() string {
	var all []string
	for _, a := range m.peers() {
		all = append(all, net.JoinHostPort(a.host, strconv.Itoa(a.peerPort)))
	}
	return strings.Join(all, AddressSeparator)
}

// ElectionAddress returns the host:port for elections as PeerAddress does, or "" if there is none.
func (m Member) ElectionAddress() string {
	var all []string
	for _, a := range m.peers() {
		if a.election != 0 {
			all = append(all, net.JoinHostPort(a.host, strconv.Itoa(a.election)))
		}
	}
	return strings.Join(all, AddressSeparator)
}
