package accept

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"time"
)

// BeginsTLS reports whether a connection that begins with these bytes speaks TLS: whether the bytes
// begin the record of a handshake of SSL 3 or later. One byte is enough, because none of gozkd's
// other protocols begins with that byte.
func BeginsTLS(first []byte) bool {
	return len(first) > 0 && first[0] == 0x16 && (len(first) == 1 || first[1] == 3)
}

// Protocol returns the name of the protocol of a connection that begins with these bytes: TLS, HTTP
// or that of ZooKeeper's clients. It returns "" for any other, and for fewer than four bytes.
func Protocol(first []byte) string {
	switch verb, _, http := strings.Cut(string(first[:min(len(first), 8)]), " "); {
	case len(first) < 4:
	case BeginsTLS(first):
		return "TLS"
	case http && slices.Contains([]string{"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "PRI"}, verb):
		return "HTTP"
	case first[0] == 0 && first[1] == 0 && first[2] == 0 && first[3] >= 28 && first[3] < 64:
		return "ZooKeeper's client protocol" // the length of a connect request
	}
	return ""
}

// Begun is a connection whose first byte has come. It supports one reader.
type Begun struct {
	net.Conn
	first  [1]byte
	unread bool // Read has not returned first yet
}

// Begin waits for the first byte of conn.
func Begin(conn net.Conn) (*Begun, error) {
	b := &Begun{Conn: conn}
	_, err := io.ReadFull(conn, b.first[:])
	b.unread = err == nil
	return b, err
}

// BeginsTLS reports whether the connection speaks TLS.
func (b *Begun) BeginsTLS() bool { return BeginsTLS(b.first[:]) }

// Read implements net.Conn.
func (b *Begun) Read(p []byte) (int, error) {
	if b.unread && len(p) > 0 {
		b.unread = false
		return copy(p, b.first[:]), nil
	}
	return b.Conn.Read(p)
}

// NetConn returns the connection below b, as tls.Conn.NetConn does.
func (b *Begun) NetConn() net.Conn { return b.Conn }

// unified accepts TLS and plain connections on one port.
type unified struct {
	results
	net.Listener
	tls      *tls.Config
	patience time.Duration
	all      sync.WaitGroup
}

// Unified returns a listener on the connections of l that accepts TLS and plain connections: the
// first byte decides. Its Accept returns only connections whose first byte has come, so a silent
// client delays nobody; the connection of a client that is silent for patience is closed. Close
// closes l.
func Unified(l net.Listener, cfg *tls.Config, patience time.Duration) net.Listener {
	u := &unified{results: newResults(), Listener: l, tls: cfg, patience: patience}
	u.all.Go(u.run) // stopped and awaited by Close
	return u
}

func (u *unified) run() {
	for {
		conn, err := u.Listener.Accept()
		switch {
		case err == nil:
			u.all.Go(func() { u.decide(conn) }) // bounded by patience; stopped and awaited by Close
		case !u.hand(nil, err), errors.Is(err, net.ErrClosed):
			return
		}
	}
}

func (u *unified) decide(conn net.Conn) {
	interrupt := context.AfterFunc(u.open, func() { _ = conn.Close() })
	defer interrupt()
	_ = conn.SetReadDeadline(time.Now().Add(u.patience)) // a connection supports deadlines
	begun, err := Begin(conn)
	if err != nil {
		_ = conn.Close() // nothing was sent on it
		return
	}
	_ = conn.SetReadDeadline(time.Time{})
	if begun.BeginsTLS() {
		u.hand(tls.Server(begun, u.tls), nil) // NB: net/http recognizes *tls.Conn
		return
	}
	u.hand(begun, nil)
}

func (u *unified) Accept() (net.Conn, error) { return u.results.Accept() }

func (u *unified) Close() error {
	u.cancel()
	err := u.Listener.Close()
	u.all.Wait()
	return err
}
