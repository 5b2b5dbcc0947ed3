package gozk

import (
	"errors"
	"net"
	"sync"
)

// proxy forwards TCP connections to a server and can cut open connections.
type proxy struct {
	listener net.Listener
	target   string
	wg       sync.WaitGroup
	mu       sync.Mutex
	conns    []net.Conn // both ends of all connections; guarded by mu
	held     bool       // new connections are closed at once; guarded by mu
}

// newProxy starts a proxy. The caller closes it.
func newProxy(target string) (*proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &proxy{listener: l, target: target}
	// Ends when close closes the listener; close waits for it.
	p.wg.Go(p.accept)
	return p, nil
}

func (p *proxy) addr() string { return p.listener.Addr().String() }

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := p.connect(client)
		if err != nil {
			_ = client.Close() // as with a dead server
			continue
		}
		// Both end when either connection is cut or closed; close waits for them.
		p.wg.Go(func() { pipe(client, server) })
		p.wg.Go(func() { pipe(server, client) })
	}
}

var errHeld = errors.New("gozk: the proxy lets nobody through")

// connect dials the server for a client and records both ends.
func (p *proxy) connect(client net.Conn) (net.Conn, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held {
		return nil, errHeld
	}
	server, err := net.Dial("tcp", p.target)
	if err != nil {
		return nil, err
	}
	p.conns = append(p.conns, client, server)
	return server, nil
}

// hold closes new connections until release.
func (p *proxy) hold() { p.setHeld(true) }

func (p *proxy) release() { p.setHeld(false) }

func (p *proxy) setHeld(held bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held = held
}

// pipe copies until either side ends, then ends the other.
func pipe(dst, src net.Conn) {
	buf := make([]byte, 64<<10)
	for {
		n, err := src.Read(buf)
		if n > 0 {
			if _, werr := dst.Write(buf[:n]); werr != nil {
				err = werr
			}
		}
		if err != nil {
			_ = dst.Close() // an error on either side ends both
			_ = src.Close()
			return
		}
	}
}

// cut ends all open connections.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		_ = c.Close() // closing twice is harmless
	}
	p.conns = nil
}

func (p *proxy) close() {
	_ = p.listener.Close() // nothing is lost with it
	p.hold()               // nor does a connection accepted just now survive cut
	p.cut()
	p.wg.Wait()
}
