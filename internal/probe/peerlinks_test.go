package probe

import "testing"

func TestMonitor_PeerLinks(t *testing.T) {
	m := ParseMonitor("zk_gozkd_peer_1_tls\t1\nzk_gozkd_peer_1_incoming_tls\t0\nzk_gozkd_peer_12_tls\t7\nzk_gozkd_peer_2_connected\t1\nzk_gozkd_peer_3_tls\tno\nzk_gozkd_peers_refused_tls_total\t9\n")
	if tls, all := m.PeerLinks(); tls != 2 || all != 3 {
		t.Errorf("%d of %d", tls, all)
	}
}
