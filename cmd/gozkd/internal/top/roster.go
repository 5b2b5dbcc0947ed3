package top

import (
	"cmp"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strconv"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/probe"
	"github.com/gozkd/gozkd/internal/serverlist"
)

// roster is who is watched: the addresses that were given, and the members that these told of.
type roster struct {
	given []string
	// places are the given addresses by what else they are called: the host's IP addresses with the port.
	places map[string]string
	// ids are the numbers of given addresses.
	ids  map[string]uint64
	set  serverlist.Set
	port int // where the server listens that told of the set: that of a member whose line names no client port
}

func newRoster(given []string, places map[string]string) *roster {
	return &roster{given: given, places: places, ids: make(map[string]uint64)}
}

// learn takes what the server at an address said of itself and of the others.
func (r *roster) learn(address string, s probe.Settings) {
	if len(s.Members) == 0 {
		return
	}
	r.set, r.port = s.Members, s.ClientPort
	if s.ClientPort == 0 {
		if _, port, err := net.SplitHostPort(address); err == nil {
			r.port, _ = strconv.Atoi(port) // of an address that was dialed
		}
	}
	if slices.Contains(r.given, address) && s.ServerID != 0 {
		maps.DeleteFunc(r.ids, func(_ string, id uint64) bool { return id == s.ServerID }) // two names of one server are one number's
		r.ids[address] = s.ServerID
	}
}

// entries returns who is watched, by number; those without one come last, as they were given.
func (r *roster) entries() []Entry {
	ids := maps.Clone(r.ids)
	var found []Entry
	for _, m := range r.set {
		address := clientAddress(m, r.port)
		if given, ok := r.places[address]; ok && ids[given] == 0 {
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

// clientAddress returns where clients find a member. A host that stands for all addresses is no destination: the one for members is.
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
