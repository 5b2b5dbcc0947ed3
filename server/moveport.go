package server

import (
	"context"
	"errors"
	"net"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/gozkd/gozkd/internal/serverlist"
	"github.com/gozkd/gozkd/proto"
)

// unspecifiedHost stands in a server line for all addresses.
const unspecifiedHost = "0.0.0.0"

// Bounds of the time after which the server tries again to listen on a client address.
const leastMoveRetry, mostMoveRetry = time.Second, time.Minute

// portMove is how a client address in the committed members reaches the goroutine that listens
// there.
type portMove struct {
	line    atomic.Pointer[serverlist.Member] // this server's, as committed; nil: not known
	changed chan struct{}                     // capacity 1: line was stored
}

func (m *portMove) init() { m.changed = make(chan struct{}, 1) }

// noteClientAddress makes the client port follow this server's line in the committed members.
// Without reconfig the configuration of this server decides, at its next start.
func (s *Server) noteClientAddress(current serverlist.Set, version proto.Zxid) {
	line, in := current.Get(uint64(s.cfg.MemberID))
	if version == 0 || !in || line.ClientPort == 0 || !s.live.Load().ReconfigEnabled {
		return
	}
	s.port.move.line.Store(&line)
	select {
	case s.port.move.changed <- struct{}{}:
	default:
	}
}

// listenAddress returns where a server listens for clients: on listen, its own configuration's
// address, until the committed members have another address for it than its configured line.
func listenAddress(configured, committed serverlist.Member, listen string) string {
	host, port, err := net.SplitHostPort(listen)
	wanted := strconv.Itoa(committed.ClientPort)
	switch {
	case err != nil, committed.ClientHost == configured.ClientHost && committed.ClientPort == configured.ClientPort:
		return listen
	case port == wanted && (host == "" || host == unspecifiedHost || host == "::"): // these include the wanted address
		return listen
	case committed.ClientHost != unspecifiedHost:
		host = committed.ClientHost
	case configured.ClientPort != 0 && configured.ClientHost != unspecifiedHost:
		host = "" // listen has the configured line's host
	}
	return net.JoinHostPort(host, wanted)
}

// followClientAddress moves the client port to the address that the committed members have for this
// server. Connections stay, also those that were made at the previous address.
func (s *Server) followClientAddress(ctx context.Context) {
	configured, _ := s.members.Get(uint64(s.cfg.MemberID))
	at, wait := s.cfg.Listen, time.Duration(0)
	var retry <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.port.move.changed:
			to := listenAddress(configured, *s.port.move.line.Load(), s.cfg.Listen)
			if to == at {
				continue
			}
			at, wait = to, 0
		case <-retry:
		}
		retry = nil
		if err := s.moveClientPort(ctx, at); err != nil {
			wait = min(max(2*wait, leastMoveRetry), mostMoveRetry)
			retry = time.After(wait)
			s.cfg.Logger.Error("no client can connect: this server cannot listen on the client address that a reconfig gave it; free that address, or change it by another reconfig",
				"address", at, "error", err, "retry_ms", wait.Milliseconds())
		}
	}
}

// moveClientPort closes the listener for clients and opens one on address. If that fails, the
// previous listener is closed nevertheless, as in ZooKeeper: the members have another address for
// clients.
func (s *Server) moveClientPort(ctx context.Context, address string) error {
	l, err := s.listen(ctx, address)
	_ = s.port.plain.Replace(nil) // an error would say that the listener was closed before
	if err != nil {               // the previous listener may have had the port
		l, err = s.listen(ctx, address)
	}
	if notHere(err) {
		_, port, _ := net.SplitHostPort(address)
		host, _, _ := net.SplitHostPort(s.cfg.Listen)
		configured := net.JoinHostPort(host, port)
		s.cfg.Logger.Warn("the client address in the server's line is not an address of this machine, so this server listens on the host of its own configuration",
			"address", address, "listen", configured, "error", err)
		l, err = s.listen(ctx, configured)
	}
	if err != nil {
		return err
	}
	if !s.port.plain.Replace(l) {
		return l.Close() // the server stops
	}
	s.life.Goroutines.Go(func() { s.accept(ctx, l, portPlain) }) // stopped by closing l, awaited by shutdown
	s.cfg.Logger.Info("the client port has moved, as a reconfig says; connections to the previous one stay", "address", l.Addr().String())
	return nil
}

// notHere reports whether an error of listening says that the host is not an address of this
// machine.
func notHere(err error) bool {
	dns := new(net.DNSError)
	return errors.Is(err, syscall.EADDRNOTAVAIL) || errors.As(err, &dns)
}
