package top

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"sort"
	"strconv"
	"time"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/clientflags"
	"github.com/gozkd/gozkd/internal/memberid"
	"github.com/gozkd/gozkd/internal/probe"
	"github.com/gozkd/gozkd/internal/serverlist"
)

// roster lists the servers to watch: the given addresses and the members that these reported.
type roster struct {
	given []string
	// aliases maps other addresses of the given servers, by IP address, to the given addresses.
	aliases map[string]string
	// ids are the member numbers of the given addresses, otherIDs those of server lines.
	ids, otherIDs map[string]uint64
	set           serverlist.Set
	port          int  // client port of the server that reported set, the default for members whose line has none
	secure        bool // TLS is spoken with all servers
	// securePort is the port for TLS of the server that reported set, which server lines do not
	// have: the other members are taken to have the same. 0: none, or the client port speaks TLS.
	securePort int
}

func newRoster(given []string, aliases map[string]string) *roster {
	return &roster{given: given, aliases: aliases, ids: make(map[string]uint64), otherIDs: make(map[string]uint64)}
}

// learn adds the identity and the members that the server at an address reported.
func (r *roster) learn(address string, s probe.Settings) {
	if len(s.Members) == 0 {
		return
	}
	r.set, r.port = s.Members, s.ClientPort
	dialed := 0
	if _, port, err := net.SplitHostPort(address); err == nil {
		dialed, _ = strconv.Atoi(port) // a dialed address has a valid port
	}
	if s.ClientPort == 0 {
		r.port = dialed
	}
	if r.secure {
		r.securePort = securePort(s, dialed)
	}
	switch {
	case s.ServerID == 0:
	case !slices.Contains(r.given, address):
		r.otherIDs[address] = s.ServerID
	default:
		maps.DeleteFunc(r.ids, func(_ string, id uint64) bool { return id == s.ServerID }) // a number belongs to one address
		r.ids[address] = s.ServerID
	}
}

// securePort returns the port for TLS of the server that reported s when it was dialed at a port.
func securePort(s probe.Settings, dialed int) int {
	clientPort := s.ClientPort
	if own, ok := s.Members.Get(s.ServerID); ok && own.ClientPort != 0 {
		clientPort = own.ClientPort
	}
	switch {
	case s.SecurePort != 0:
		return s.SecurePort
	case clientPort == dialed: // a unified port
		return 0
	}
	return dialed
}

// entries returns the servers by number, then those without one as given. A number stands there
// once, and so does an address: if a line has no client port, and the port of the server that
// reported it is that server's own, or another member answered there, the address is unknown. A
// given server that has not reported its number yet may be that member.
func (r *roster) entries() []Entry {
	ids := maps.Clone(r.ids)
	for _, m := range r.set {
		if given, ok := r.aliases[r.address(m)]; ok && ids[given] == 0 && !hasID(ids, m.ID) {
			ids[given] = m.ID
		}
	}
	list := make([]Entry, 0, len(r.given)+len(r.set))
	silent := 0 // given servers without a number
	for _, address := range r.given {
		list = append(list, Entry{Address: address, ID: ids[address]})
		if ids[address] == 0 {
			silent++
		}
	}
	var hidden []Entry // members without a known address
	for _, m := range r.set {
		if hasID(ids, m.ID) {
			continue
		}
		address := r.address(m)
		_, given := r.aliases[address]
		if given || r.otherIDs[address] != 0 && r.otherIDs[address] != m.ID || slices.ContainsFunc(list, func(e Entry) bool { return e.Address == address }) {
			hidden = append(hidden, Entry{Address: fmt.Sprintf("%s %s%s", m.Key(), m.Host, unknownPort), ID: m.ID})
			continue
		}
		list = append(list, Entry{Address: address, ID: m.ID})
	}
	if len(hidden) > silent {
		list = append(list, hidden...)
	}
	sort.SliceStable(list, func(i, j int) bool { // none becomes the largest
		return uint64(memberid.NumberOrNone(list[i].ID)) < uint64(memberid.NumberOrNone(list[j].ID))
	})
	return list
}

func hasID(ids map[string]uint64, id uint64) bool {
	return slices.Contains(slices.Collect(maps.Values(ids)), id)
}

// unknownPort ends the address of an entry that stands for a member whose client port is unknown.
const unknownPort = ":?"

var errUnknownPort = errors.New("its server line has no client port: name this server with -server")

// askUnknown is the ask of a poller for such an entry.
func askUnknown(context.Context, string, string) (string, error) { return "", errUnknownPort }

func (r *roster) address(m serverlist.Member) string {
	if r.securePort != 0 {
		m.ClientPort = r.securePort
	}
	return m.Dialed(r.port)
}

// discoverer returns a function that learns the identity of a member and the other members as a
// client: anybody may read /zookeeper/config, and the first byte of a session id is the number of
// the member that created it. Source: ZooKeeper SessionTrackerImpl.initializeNextSessionId.
func discoverer(timeout time.Duration, security *clientflags.Security) func(ctx context.Context, address string) (probe.Settings, error) {
	return func(ctx context.Context, address string) (_ probe.Settings, err error) {
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		cfg := client.Config{Servers: []string{address}, ConnectTimeout: timeout}
		security.Configure(&cfg)
		c, err := client.Connect(ctx, cfg)
		if err != nil {
			return probe.Settings{}, err
		}
		defer func() { _ = c.Close() }() // the data has been read
		data, _, err := c.Config(ctx, false)
		if err != nil {
			return probe.Settings{}, err
		}
		s := probe.ParseSettings(string(data))
		s.ServerID = memberid.Of(uint64(c.Session().ID) >> 56)
		return s, nil
	}
}

// aliases maps IP addresses with ports to the given addresses whose names can be resolved.
func aliases(ctx context.Context, addresses []string, timeout time.Duration) map[string]string {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	m := make(map[string]string)
	for _, address := range addresses {
		m[address] = address
		host, port, err := net.SplitHostPort(address)
		if err != nil {
			continue
		}
		ips, err := net.DefaultResolver.LookupHost(ctx, host)
		if err != nil {
			continue
		}
		for _, ip := range ips {
			m[net.JoinHostPort(ip, port)] = address
		}
	}
	return m
}
