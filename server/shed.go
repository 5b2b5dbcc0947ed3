package server

import "math/rand/v2"

// ShedConnections closes some of the clients' connections, so that the clients go to other servers, and returns how many: that part of a hundred
// of them, rounded up, chosen by chance. Sessions live on. It does not wait until the clients have left, and does not keep them from coming back
// to this server. What is below 0 counts as 0, what is above 100 as 100.
//
// Source: ZooKeeper's admin command shed_connections, which is new in 3.10.
func (s *Server) ShedConnections(percent int) int {
	all := s.connections()
	conns := make([]*conn, 0, len(all))
	for _, c := range all {
		conns = append(conns, c)
	}
	n := (len(conns)*min(max(percent, 0), 100) + 99) / 100
	rand.Shuffle(len(conns), func(i, j int) { conns[i], conns[j] = conns[j], conns[i] })
	for _, c := range conns[:n] {
		c.close()
	}
	if n > 0 {
		s.cfg.Logger.Info("connections closed to shed load", "closed", n, "of", len(conns))
	}
	return n
}
