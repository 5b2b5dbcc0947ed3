package ports

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/internal/neterr"
	"github.com/gozkd/gozkd/internal/serverlist"
	"github.com/gozkd/gozkd/internal/wakeup"
)

// Bounds of the time after which a port is tried again at an address to which a reconfig moved it.
const leastMoveRetry, mostMoveRetry = time.Second, time.Minute

// Clients is the port for clients without TLS. It can follow the client address that reconfigs give
// to this server. Connections stay, also those that were made at the previous address.
type Clients struct {
	Port
	cfg     ClientsConfig
	line    atomic.Pointer[serverlist.Member] // this server's, as committed; nil: not known
	changed chan struct{}                     // capacity 1: line was stored
}

// ClientsConfig is the configuration of the port for clients.
type ClientsConfig struct {
	Address string            // of the port, as this server itself is configured
	Line    serverlist.Member // of this server, as this server itself is configured
	Listen  func(ctx context.Context, address string) (net.Listener, error)
	Logger  hclog.Logger
}

// Init prepares a port, which has no listener yet.
func (p *Clients) Init(cfg ClientsConfig) { p.cfg, p.changed = cfg, make(chan struct{}, 1) }

// Move makes Follow move the port to the address in a committed line of this server.
func (p *Clients) Move(line serverlist.Member) {
	p.line.Store(&line)
	wakeup.Send(p.changed)
}

// Follow moves the port until ctx ends. accept gets each new listener. Follow is called once.
func (p *Clients) Follow(ctx context.Context, accept func(net.Listener)) {
	at, wait := p.cfg.Address, time.Duration(0)
	var retry <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.changed:
			to := p.line.Load().ListenAddress(p.cfg.Line, p.cfg.Address)
			if to == at {
				continue
			}
			at, wait = to, 0
		case <-retry:
		}
		retry = nil
		if err := p.move(ctx, at, accept); err != nil {
			wait = min(max(2*wait, leastMoveRetry), mostMoveRetry)
			retry = time.After(wait)
			p.cfg.Logger.Error("no client can connect: this server cannot listen on the client address that a "+
				"reconfig gave it; free that address, or change it by another reconfig",
				"address", at, "error", err, "retry_ms", wait.Milliseconds())
		}
	}
}

// move opens a listener on address, and then closes the previous one. If that was in the way, move
// then opens the new one. If no listener can be opened, the previous one is closed nevertheless, as
// in ZooKeeper: the members have another address for clients.
func (p *Clients) move(ctx context.Context, address string, accept func(net.Listener)) error {
	l, err := p.cfg.Listen(ctx, address)
	_ = p.Replace(nil) // false: the server stops
	if err != nil {    // the previous listener may have had the port
		l, err = p.cfg.Listen(ctx, address)
	}
	if notHere(err) {
		_, port, _ := net.SplitHostPort(address)
		host, _, _ := net.SplitHostPort(p.cfg.Address)
		configured := net.JoinHostPort(host, port)
		p.cfg.Logger.Warn("the client address in the server's line is not an address of this machine, "+
			"so this server listens on the host of its own configuration",
			"address", address, "listen", configured, "error", err)
		l, err = p.cfg.Listen(ctx, configured)
	}
	if err != nil {
		return err
	}
	if !p.Replace(l) {
		return l.Close() // the server stops
	}
	accept(l)
	p.cfg.Logger.Info("the client port has moved, as a reconfig says; connections to the previous one stay",
		"address", l.Addr().String())
	return nil
}

func notHere(err error) bool {
	dns := new(net.DNSError)
	return neterr.Is(err, syscall.EADDRNOTAVAIL) || errors.As(err, &dns)
}
