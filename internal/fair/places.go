package fair

import (
	"net"
	"net/netip"
	"slices"
	"sync"
)

// Host returns the Network of a connection's other end.
func Host(remote net.Addr) string {
	host, _, err := net.SplitHostPort(remote.String())
	if err != nil { // a name in memory
		host = remote.String()
	}
	return Network(host)
}

// Network returns what hosts are counted by: the IPv4 address, the /64 network of an IPv6 address,
// of which one machine may have all addresses, or the name of a host in memory.
func Network(host string) string {
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return host
	}
	ip, bits := ip.Unmap().WithZone(""), 32
	if ip.Is6() {
		bits = 64
	}
	return netip.PrefixFrom(ip, bits).Masked().String()
}

// Places holds callers that have proved nothing yet, such as connections before their handshake. If
// there is no room, a newcomer takes the place of the oldest caller of the host with most callers.
// An honest caller needs its place only for milliseconds. Without this rule, silent strangers could
// occupy all places until they time out. Methods may be called from any goroutine; the zero value
// is empty.
type Places[V comparable] struct {
	mu      sync.Mutex     // guards the fields below
	callers []caller[V]    // oldest first
	hosts   map[string]int // callers by host
}

type caller[V comparable] struct {
	host string
	v    V
}

// Enter adds v, which is not there yet. If there are then more callers than there is room for, one
// of them has left: out, which can be v.
func (p *Places[V]) Enter(v V, host string, room int) (out V, full bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.hosts == nil {
		p.hosts = make(map[string]int)
	}
	p.hosts[host]++
	if p.callers = append(p.callers, caller[V]{host, v}); len(p.callers) <= room {
		return out, false
	}
	at := 0
	for i := range p.callers {
		if p.hosts[p.callers[i].host] > p.hosts[p.callers[at].host] {
			at = i
		}
	}
	out = p.callers[at].v
	p.remove(at)
	return out, true
}

// Leave removes v, if it is still there.
func (p *Places[V]) Leave(v V) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.IndexFunc(p.callers, func(c caller[V]) bool { return c.v == v }); i >= 0 {
		p.remove(i)
	}
}

func (p *Places[V]) remove(i int) {
	host := p.callers[i].host
	p.callers = slices.Delete(p.callers, i, i+1)
	if p.hosts[host]--; p.hosts[host] == 0 {
		delete(p.hosts, host)
	}
}

// Len returns the number of callers.
func (p *Places[V]) Len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.callers)
}
