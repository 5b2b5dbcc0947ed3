package link

// Flush writes the output to the socket, and waits for the socket if necessary. The goroutine that
// reads the connection calls Flush, so a client that does not read is not read either.
func (l *Link) Flush() {
	l.flushes.Add(1)
	defer l.flushes.Add(-1)
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.flushing && l.Out.Len() >= Burst && !l.closed {
		l.room.Wait()
	}
	if !l.flushing {
		l.writeOut(false)
	}
}

// FlushAsync writes without waiting what the socket accepts, and leaves the rest to a goroutine.
func (l *Link) FlushAsync() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.flushing || l.closed {
		return
	}
	if l.Out.Len() == 0 {
		if l.closeAfter {
			l.writeOut(true) // nothing: this ends the connection
		}
		return
	}
	// Apply does not spend its time on encrypting much for one client.
	if l.raw != nil && (l.tls == nil || l.Out.Len() <= maxSealNow) {
		l.writeOut(true)
	}
	if !l.flushing && l.Out.Len() > 0 && !l.closed {
		l.flushing = true
		// Ends when the output is written or the connection closes; Close of the server closes the
		// connection and waits.
		l.host.Goroutines.Go(l.finishFlush)
	}
}

func (l *Link) finishFlush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.flushing = false
	l.writeOut(false)
}

// writeOut writes until the output is empty or, if try is set, until the socket would block. The
// rest stays on the output. l.mu is held, except while writing.
func (l *Link) writeOut(try bool) {
	l.flushing = true
	for l.unsent() && !l.closed {
		l.memory.hold(&l.host.Memory, l.Out.shared)
		o, m := l.Out, &l.memory
		l.Out = Output{}
		m.writing, m.writingShared, m.waited = o.Len()-o.nBytes, len(o.shared), false
		l.mu.Unlock()
		err := l.send(&o, try)
		l.mu.Lock()
		if sent := m.writingShared - len(o.shared); sent > 0 {
			m.release(&l.host.Memory, sent)
		}
		m.writing, m.writingShared = 0, 0
		l.room.Broadcast()
		if err != nil {
			l.CloseLocked()
			break
		}
		if o.Len() > 0 { // only if try
			o.AppendOutput(l.Out)
			l.Out = o
			break
		}
		if m.since.Load() != 0 {
			m.since.Store(0)
		}
		if !m.waited { // otherwise the buffer may be as long as a slow client let it become
			putOutput(o.Buf)
		}
	}
	l.flushing = false
	l.room.Broadcast()
	empty := l.Out.Len() == 0
	if empty {
		putOutput(l.Out.Buf)
		l.Out = Output{}
	}
	l.Recount(!empty || l.memory.charged())
	if empty && l.closeAfter && !l.closed {
		_ = l.EndOutput() // forget closes the socket
		l.socketOpen = true
	}
}

// unsent reports whether there is output, or something that TLS itself has to say. l.mu is held.
func (l *Link) unsent() bool {
	return l.Out.Len() > 0 || l.sealed() && l.tls.wire.unsent() > 0
}

// Sent reports whether the socket has taken all output. l.mu is held.
func (l *Link) Sent() bool { return !l.flushing && !l.unsent() }

// send writes o until it is empty or, if try is set, until the socket would block.
func (l *Link) send(o *Output, try bool) error {
	for {
		if l.sealed() {
			if err := l.tls.seal(o, l.raw.Last); err != nil {
				return err
			}
		}
		if o.Len() == 0 {
			return nil
		}
		b, more := o.Next()
		n, err := 0, error(nil)
		if l.raw != nil {
			n, err = l.raw.TryWrite(b, more)
		}
		if n < len(b) && err == nil && !try {
			o.Advance(n)
			o.shrink()
			l.awaitClient(o)
			b, _ = o.Next()
			n, err = l.writeRest(b)
		}
		if err != nil {
			return err
		}
		if o.Advance(n); n < len(b) {
			return nil
		}
	}
}

// writeRest writes the bytes that a socket did not take at once, or all to other connections. It
// writes pieces, and each that the client takes shows that the client is alive.
func (l *Link) writeRest(b []byte) (n int, err error) {
	for n < len(b) && err == nil {
		var m int
		if l.tls == nil || l.raw != nil {
			m, err = l.nc.Write(b[n:min(len(b), n+pieceBytes)])
		} else {
			m, err = l.tls.writeFrames(b[n:])
		}
		if n += m; err == nil && l.handling.Load() { // a client that is read has other ways to say that it is alive
			l.noteAlive(l.host.Now())
		}
	}
	return n, err
}
