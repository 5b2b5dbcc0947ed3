package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/tlsconf"
)

// handshakeRecord is the first byte of a TLS connection. No request of HTTP begins with it.
const handshakeRecord = 0x16

// unifiedListener accepts TLS and plain connections on one port: the first byte decides. Its Accept
// returns connections whose first byte has come, so that a silent client delays nobody.
type unifiedListener struct {
	net.Listener
	tls     *tls.Config
	ctx     context.Context // of the goroutines
	cancel  context.CancelFunc
	decided chan decision
	all     sync.WaitGroup
}

// decision is a result of Accept.
type decision struct {
	conn net.Conn
	err  error
}

// newUnifiedListener returns a listener on the connections of l. Close closes l.
func newUnifiedListener(l net.Listener, cfg *tls.Config) *unifiedListener {
	u := &unifiedListener{Listener: l, tls: cfg, decided: make(chan decision)}
	u.ctx, u.cancel = context.WithCancel(context.Background())
	u.all.Go(u.run) // stopped and awaited by Close
	return u
}

// run accepts connections until the listener is closed.
func (u *unifiedListener) run() {
	for {
		conn, err := u.Listener.Accept()
		if err == nil {
			u.all.Go(func() { u.decide(conn) }) // bounded by requestTimeout; stopped and awaited by Close
			continue
		}
		u.hand(decision{err: err})
		if errors.Is(err, net.ErrClosed) || u.ctx.Err() != nil {
			return
		}
	}
}

// decide reads the first byte of a connection.
func (u *unifiedListener) decide(conn net.Conn) {
	interrupt := context.AfterFunc(u.ctx, func() { _ = conn.Close() })
	defer interrupt()
	begun := &begunConn{Conn: conn}
	_ = conn.SetReadDeadline(time.Now().Add(requestTimeout)) // a connection supports deadlines
	if _, err := conn.Read(begun.first[:]); err != nil {
		_ = conn.Close() // nothing was sent on it
		return
	}
	_ = conn.SetReadDeadline(time.Time{})
	begun.unread = true
	if begun.first[0] == handshakeRecord {
		u.hand(decision{conn: tls.Server(begun, u.tls)}) // NB: net/http recognizes *tls.Conn
		return
	}
	u.hand(decision{conn: begun})
}

// hand passes a result to Accept.
func (u *unifiedListener) hand(d decision) {
	select {
	case u.decided <- d:
	case <-u.ctx.Done():
		if d.conn != nil {
			_ = d.conn.Close() // nobody accepts it any more
		}
	}
}

// Accept implements net.Listener.
func (u *unifiedListener) Accept() (net.Conn, error) {
	select {
	case d := <-u.decided:
		return d.conn, d.err
	case <-u.ctx.Done():
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (u *unifiedListener) Close() error {
	u.cancel()
	err := u.Listener.Close()
	u.all.Wait()
	return err
}

// begunConn is a connection whose first byte was read. It supports one reader.
type begunConn struct {
	net.Conn
	first  [1]byte
	unread bool
}

// Read implements net.Conn.
func (c *begunConn) Read(b []byte) (int, error) {
	if c.unread && len(b) > 0 {
		c.unread = false
		b[0] = c.first[0]
		return 1, nil
	}
	return c.Conn.Read(b)
}

// NetConn returns the connection below, as that of a tls.Conn does.
func (c *begunConn) NetConn() net.Conn { return c.Conn }

// errorLog gets the lines of an http.Server. That a handshake failed, and why, is for operators.
type errorLog struct{ log hclog.Logger }

func (l errorLog) Write(line []byte) (int, error) {
	text := strings.TrimSpace(string(line))
	if rest, ok := strings.CutPrefix(text, "http: TLS handshake error from "); ok {
		caller, reason, _ := strings.Cut(rest, ": ")
		l.log.Warn("TLS handshake failed", "from", caller, "reason", reason)
	} else {
		l.log.Debug(text)
	}
	return len(line), nil
}

// secured returns a listener that adds TLS to the connections of l. unified: it also accepts plain
// connections. source may be nil: no TLS.
func secured(l net.Listener, source *tlsconf.Source, unified bool) net.Listener {
	switch {
	case source == nil:
		return l
	case unified:
		return newUnifiedListener(l, source.Server())
	}
	return tls.NewListener(l, source.Server())
}

// administrator returns a function that reports whether a client certificate is that of an
// administrator, by the present configuration.
func (r *reloader) administrator() func(*x509.Certificate) bool {
	return func(cert *x509.Certificate) bool {
		r.mu.Lock()
		c := r.last
		r.mu.Unlock()
		id, err := c.CertificateID()(cert)
		return err == nil && slices.Contains(c.AdminIdentities(), id)
	}
}
