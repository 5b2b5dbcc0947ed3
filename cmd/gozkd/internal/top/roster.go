package top

import (
	"cmp"
	"context"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/probe"
	"github.com/gozkd/gozkd/internal/serverlist"
)

// roster lists the servers to watch: the given addresses and the members that these reported.
type roster struct {
	given []string
	// aliases maps other addresses of the given servers, by IP address, to the given addresses.
	aliases map[string]string
	// ids are the member numbers of the given addresses.
	ids  map[string]uint64
	set  serverlist.Set
	port int // client port of the server that reported set, the default for members whose line has none
}

func newRoster(given []string, aliases map[string]string) *roster {
	return &roster{given: given, aliases: aliases, ids: make(map[string]uint64)}
}

// learn adds the identity and the members that the server at an address reported.
func (r *roster) learn(address string, s probe.Settings) {
	if len(s.Members) == 0 {
		return
	}
	r.set, r.port = s.Members, s.ClientPort
	if s.ClientPort == 0 {
		if _, port, err := net.SplitHostPort(address); err == nil {
			r.port, _ = strconv.Atoi(port) // a dialed address has a valid port
		}
	}
	if slices.Contains(r.given, address) && s.ServerID != 0 {
		maps.DeleteFunc(r.ids, func(_ string, id uint64) bool { return id == s.ServerID }) // a number belongs to one address
		r.ids[address] = s.ServerID
	}
}

// entries returns the servers by number, followed by those without a number in the given order.
func (r *roster) entries() []Entry {
	ids := maps.Clone(r.ids)
	var found []Entry
	for _, m := range r.set {
		address := clientAddress(m, r.port)
		if given, ok := r.aliases[address]; ok && ids[given] == 0 {
			ids[given] = m.ID
		}
		if !slices.Contains(slices.Collect(maps.Values(ids)), m.ID) {
			found = append(found, Entry{Address: address, ID: m.ID})
		}
	}
	list := make([]Entry, 0, len(r.given)+len(found))
	for _, address := range r.given {
		list = append(list, Entry{Address: address, ID: ids[address]})
	}
	list = append(list, found...)
	slices.SortStableFunc(list, func(a, b Entry) int {
		return cmp.Compare(a.ID-1, b.ID-1) // 0 becomes the largest
	})
	return list
}

// clientAddress returns the address for clients of a member. If the member listens on a wildcard
// address, the host of the peer address is used.
func clientAddress(m serverlist.Member, port int) string {
	host := m.ClientHost
	if ip, err := netip.ParseAddr(host); host == "" || err == nil && ip.IsUnspecified() {
		host = m.Host
	}
	if m.ClientPort != 0 {
		port = m.ClientPort
	}
	return net.JoinHostPort(host, strconv.Itoa(port))
}

// discoverer returns a function that learns the identity of a member and the other members as a
// client: anybody may read /zookeeper/config, and the first byte of a session id is the number of
// the member that created it. Source: ZooKeeper SessionTrackerImpl.initializeNextSessionId.
func discoverer(timeout time.Duration) func(ctx context.Context, address string) (probe.Settings, error) {
	return func(ctx context.Context, address string) (_ probe.Settings, err error) {
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		c, err := client.Connect(ctx, client.Config{Servers: []string{address}, ConnectTimeout: timeout})
		if err != nil {
			return probe.Settings{}, err
		}
		defer func() { _ = c.Close() }() // the data has been read
		data, _, err := c.Config(ctx, false)
		if err != nil {
			return probe.Settings{}, err
		}
		s := probe.ParseSettings(string(data))
		s.ServerID = uint64(c.Session().ID) >> 56
		return s, nil
	}
}

// aliases maps the IP addresses with ports of the given addresses to these. It skips a name that
// cannot be resolved: asking that server reports the error.
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
