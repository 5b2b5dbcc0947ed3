package server

// awaitWrites waits until fewer writes are under way in the server.
func (c *conn) awaitWrites(in *input, big bool) {
	c.holdInput(len(in.buf), false)
	c.blocked.Store(true)
	begin, requests := c.server.cfg.Now(), &c.server.meter.Requests
	requests.ThrottleWaits.Add(1) // before the wait, so that an operator sees why nothing moves
	c.server.writes.wait(big)
	requests.Throttled.Record(int64(c.server.cfg.Now().Sub(begin)), 1)
	c.blocked.Store(false)
}

// awaitQueue waits until inTheWay returns false or the connection closes. inTheWay is called after
// each change of the queue.
func (c *conn) awaitQueue(in *input, inTheWay func() bool) {
	c.holdInput(len(in.buf), false)
	c.blocked.Store(true)
	defer c.blocked.Store(false)
	c.mu.Lock()
	defer c.mu.Unlock()
	for !c.closed && !c.closeAfter && inTheWay() {
		c.room.Wait()
	}
}

// awaitClosed waits until the connection is closed, which happens after the reply to closeSession.
// Until then the connection is not read, because nothing can be done for the session any more.
func (c *conn) awaitClosed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for !c.closed {
		c.room.Wait()
	}
}
