package server

import "bufio"

// writeKinds answers kind: the containers and the TTL znodes.
func (s *Server) writeKinds(w *bufio.Writer) {
	type znode struct {
		path  string
		ttlMs int64
	}
	var all []znode // copied, so that nobody waits for who reads the answer slowly
	s.tree.RLock()
	for path, ttlMs := range s.state.ContainersAndTTLs() {
		all = append(all, znode{path, ttlMs})
	}
	s.tree.RUnlock()
	for _, n := range all {
		if n.ttlMs == 0 {
			say(w, "container\t%s\n", n.path)
		} else {
			say(w, "ttl\t%d\t%s\n", n.ttlMs, n.path)
		}
	}
	say(w, "%d\n", len(all)) // so that who reads can tell an answer that was cut off
}
