package server

import "sync"

// handshakes bounds the TLS handshakes under way, which cost memory and time before the client has
// proved anything. Hosts share the places fairly: unfinished handshakes of a host do not keep other
// hosts out.
type handshakes struct {
	mu     sync.Mutex
	byHost map[string][]*conn // the oldest first
	n      int
}

// begin gives c a place, or returns false if there is none. A negative limit is none. The caller
// calls end if it got a place.
func (h *handshakes) begin(c *conn, limit int) bool {
	h.mu.Lock()
	var evicted *conn
	if limit >= 0 && h.n >= limit {
		host, most := "", len(h.byHost[c.addr])+1 // taking a place for c must not make c's host the one with most
		for other, conns := range h.byHost {
			if len(conns) > most {
				host, most = other, len(conns)
			}
		}
		if host == "" {
			h.mu.Unlock()
			c.exceeds(limit)
			return false
		}
		evicted = h.byHost[host][0]
		h.removeLocked(evicted)
	}
	if h.byHost == nil {
		h.byHost = make(map[string][]*conn)
	}
	h.byHost[c.addr] = append(h.byHost[c.addr], c)
	h.n++
	h.mu.Unlock()
	if evicted != nil {
		evicted.exceeds(limit)
		evicted.close()
	}
	return true
}

// exceeds counts and logs a connection that is closed because too many handshakes are under way.
func (c *conn) exceeds(limit int) {
	c.server.meter.Conns.HandshakesExceeded.Add(1)
	c.logger().Warn("connection refused: too many TLS handshakes are under way", "limit", limit)
}

// end gives c's place back, unless another connection has taken it.
func (h *handshakes) end(c *conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.removeLocked(c)
}

func (h *handshakes) removeLocked(c *conn) {
	conns := h.byHost[c.addr]
	for i := range conns {
		if conns[i] != c {
			continue
		}
		h.n--
		if len(conns) == 1 {
			delete(h.byHost, c.addr)
			return
		}
		kept := make([]*conn, 0, len(conns)-1) // nothing keeps c
		h.byHost[c.addr] = append(append(kept, conns[:i]...), conns[i+1:]...)
		return
	}
}

func (h *handshakes) count() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return int64(h.n)
}
