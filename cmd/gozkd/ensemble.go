package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/config"
	"github.com/gozkd/gozkd/internal/memberdir"
	"github.com/gozkd/gozkd/internal/memnet"
	"github.com/gozkd/gozkd/internal/parallel"
	"github.com/gozkd/gozkd/internal/portfile"
	"github.com/gozkd/gozkd/server"
)

// serveEnsemble runs all members of an ensemble in this process until stop ends or a member fails.
func serveEnsemble(
	stop context.Context, inv *config.Invocation, c config.Config, trail *auditTrail, log hclog.Logger,
) (err error) {
	if err := memberdir.Check(c.Server.Dir, inv.Ensemble); err != nil {
		return err
	}
	servers, addresses, err := newMembers(stop, inv.Ensemble, c, trail, log)
	// No member hands over its lead, since no member remains to take it.
	defer func() { err = errors.Join(err, each(servers, (*server.Server).Abort)) }()
	if err != nil {
		return err
	}
	running, cancel := context.WithCancel(stop)
	defer cancel()
	err = each(servers, func(s *server.Server) error {
		err := s.Start(running)
		if running.Err() != nil {
			return nil // stopped, or another member failed first
		}
		if err != nil {
			cancel()
		}
		return err
	})
	if err != nil || stop.Err() != nil {
		return err
	}
	where := portfile.Ports{Client: strings.Join(addresses, ",")}
	for i, address := range addresses {
		where.Members = append(where.Members, portfile.Member{ID: i + 1, Client: address})
	}
	log.Info("all members serve", "connect", where.Client)
	if err := where.Write(inv.PortFile); err != nil {
		return err
	}
	err = each(servers, func(s *server.Server) error {
		select {
		case err := <-s.Err():
			cancel()
			return err
		case <-running.Done():
			return nil
		}
	})
	log.Info("stopping")
	return err
}

// newMembers makes n servers, each with an open port for clients. The members talk to each other
// over a network in memory. After an error newMembers returns the servers made so far.
func newMembers(
	ctx context.Context, n int, c config.Config, trail *auditTrail, log hclog.Logger,
) (servers []*server.Server, addresses []string, err error) {
	const peerPort = 2888 // of every member: on the network in memory each is a host
	var listeners []net.Listener
	defer func() {
		for _, l := range listeners[len(servers):] {
			err = errors.Join(err, l.Close()) // no server owns the listener
		}
	}()
	var lines []string
	for i := range n {
		port := c.ClientPort
		if port != 0 {
			port += i
		}
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(c.ClientPortAddress, strconv.Itoa(port)))
		if err != nil {
			return nil, nil, fmt.Errorf("client port of member %d: %w", i+1, err)
		}
		listeners = append(listeners, l)
		addresses = append(addresses, l.Addr().String())
		lines = append(lines, fmt.Sprintf("server.%d=m%[1]d:%d:%d:participant;%s", i+1, peerPort, peerPort+1, addresses[i]))
	}
	network := memnet.New(0)
	logins := &mechanisms{log: log.Named("sasl")}
	for i := range n {
		cfg := serverConfig(c, log)
		cfg.Audit, cfg.ArchiveBytes = trail.sink(), 0 // no archiver runs here
		if cfg.Auth.SASL, err = logins.apply(&c); err != nil {
			return servers, nil, err
		}
		cfg.Listen, cfg.Listener, cfg.MemberID = "", listeners[i], uint8(i+1)
		cfg.Dir, cfg.LogDir = memberdir.Of(c.Server.Dir, i+1, n), memberdir.Of(c.Server.LogDir, i+1, n)
		if n > 1 {
			host := fmt.Sprintf("m%d", i+1)
			cfg.Members, cfg.Logger = lines, log.Named(host)
			if cfg.PeerListener, err = network.Listen(net.JoinHostPort(host, strconv.Itoa(peerPort))); err != nil {
				return servers, nil, err
			}
			cfg.PeerDial = func(ctx context.Context, address string) (net.Conn, error) { return network.Dial(ctx, host, address) }
		}
		s, err := server.New(cfg)
		if err != nil {
			return servers, nil, err
		}
		servers = append(servers, s)
	}
	return servers, addresses, nil
}

// each calls do for all servers at the same time and returns all errors.
func each(servers []*server.Server, do func(*server.Server) error) error {
	return errors.Join(parallel.Each(len(servers), len(servers), func(i int) error {
		err := do(servers[i])
		if err != nil {
			err = fmt.Errorf("member %d: %w", i+1, err)
		}
		return err
	})...)
}
