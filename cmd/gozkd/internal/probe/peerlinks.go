package probe

import "strings"

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
