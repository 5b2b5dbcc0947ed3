package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/config"
	"github.com/gozkd/gozkd/internal/ensemble"
	"github.com/gozkd/gozkd/internal/parallel"
	"github.com/gozkd/gozkd/server"
)

// serveEnsemble runs all members of an ensemble in this process until stop ends or a member fails.
func serveEnsemble(
	stop context.Context, inv *config.Invocation, c config.Config, trail *auditTrail, log hclog.Logger,
) error {
	addresses := ensemble.Addresses(c.ClientPortAddress, c.ClientPort, inv.Ensemble)
	e, err := ensemble.New(c.Server.Dir, addresses, false)
	if err != nil {
		return err
	}
	defer e.Close()
	cfg, err := ensembleConfig(c, trail, log)
	if err != nil {
		return err
	}
	defer log.Info("all members have ended")
	running, cancel := context.WithCancel(stop)
	var serve atomic.Int32 // members
	return errors.Join(parallel.Each(inv.Ensemble, inv.Ensemble, func(i int) error {
		defer cancel() // without this member the others need not run
		m := e.Members[i]
		err := serveMember(running, cfg, e, m, func() error {
			if int(serve.Add(1)) < inv.Ensemble {
				return nil
			}
			where := e.Ports()
			log.Info("all members serve", "connect", where.Client)
			return where.Write(inv.PortFile)
		})
		if err != nil {
			err = fmt.Errorf("%s: %w", m.Name(), err)
		}
		return err
	})...)
}

// serveMember runs a member until ctx ends or the member fails. It calls serving when the member
// serves.
func serveMember(
	ctx context.Context, cfg server.Config, e *ensemble.Ensemble, m *ensemble.Member, serving func() error,
) error {
	clients, peers, err := m.Listen()
	if err != nil {
		return err
	}
	cfg.MemberID, cfg.Listener, cfg.Members = uint8(m.ID()), clients, e.Lines()
	cfg.Dir, cfg.LogDir = m.Dir(), m.Own(cfg.LogDir)
	if peers != nil {
		cfg.Logger, cfg.PeerListener, cfg.PeerDial = cfg.Logger.Named(m.Host()), peers, m.DialPeer
	}
	s, err := server.New(cfg)
	if err != nil {
		return errors.Join(err, clients.Close())
	}
	var ended error
	if err = s.Start(ctx); err == nil {
		if err = serving(); err == nil {
			select {
			case err = <-s.Err():
			case <-ctx.Done():
			}
		}
		ended = s.Abort() // no member hands over its lead, since no member remains to take it
	}
	if ctx.Err() != nil {
		err = nil // stopped, or another member failed first
	}
	return errors.Join(err, ended)
}

// ensembleConfig returns what the configurations of all members have in common.
func ensembleConfig(c config.Config, trail *auditTrail, log hclog.Logger) (cfg server.Config, err error) {
	cfg = serverConfig(c, log)
	cfg.Listen, cfg.Audit, cfg.ArchiveBytes = "", trail.sink(), 0 // no archiver runs here
	cfg.Auth.SASL, err = (&mechanisms{log: log.Named("sasl")}).apply(&c)
	return cfg, err
}
