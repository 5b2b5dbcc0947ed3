package server

// awaitQueue waits until inTheWay returns false or the connection closes. inTheWay is called after
// each change of the queue.
func (c *conn) awaitQueue(in *input, inTheWay func() bool) {
	c.holdInput(len(in.buf), false)
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
