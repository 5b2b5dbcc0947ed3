package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
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
	var serve atomic.Int32                 // members
	admins := make([]string, inv.Ensemble) // their admin endpoints; "": not served
	var pages sync.WaitGroup               // of members, with sessions whose end takes a majority
	pages.Add(inv.Ensemble)
	return errors.Join(parallel.Each(inv.Ensemble, inv.Ensemble, func(i int) error {
		defer cancel() // without this member the others need not run
		m, closed := e.Members[i], sync.OnceFunc(pages.Done)
		defer closed()
		stopping := func() {
			closed()
			pages.Wait()
		}
		err := serveMember(running, inv, c, cfg, e, m, stopping, func(admin string) error {
			admins[i] = admin
			if int(serve.Add(1)) < inv.Ensemble {
				return nil
			}
			where := e.Ports()
			served := slices.DeleteFunc(admins, func(admin string) bool { return admin == "" })
			where.Admin = strings.Join(served, ",")
			log.Info("all members serve", "connect", where.Client, "admin", where.Admin)
			return where.Write(inv.PortFile)
		})
		if err != nil {
			err = fmt.Errorf("%s: %w", m.Name(), err)
		}
		return err
	})...)
}

// serveMember runs a member until ctx ends or the member fails. It calls serving with the URL of
// the admin endpoint when the member serves, and stopping before the server stops. The first
// endpoint is at the configured port, those of the other members are at the following ports.
func serveMember(
	ctx context.Context, inv *config.Invocation, c config.Config, cfg server.Config,
	e *ensemble.Ensemble, m *ensemble.Member, stopping func(), serving func(admin string) error,
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
	if c.Server.Dir = cfg.Dir; c.AdminPort > 0 {
		c.AdminPort += m.ID() - 1
	}
	r := &reloader{server: s, tls: &portTLS{log: cfg.Logger}, again: notAgain, started: c, last: c, log: cfg.Logger}
	ends := openEndpoints(ctx, inv, c, s, r, nil, cfg.Logger)
	var ended error
	if err = s.Start(ctx); err == nil {
		if err = serving(ends.admin); err == nil {
			select {
			case err = <-s.Err():
			case <-ctx.Done():
			}
		}
		if ends.web.Close(); err == nil {
			stopping()
		}
		ended = s.Abort() // no member hands over its lead, since no member remains to take it
	}
	if ctx.Err() != nil {
		err = nil // stopped, or another member failed first
	}
	return errors.Join(err, ends.close(), ended)
}

// notAgain is the loader of members of an ensemble, whose configuration is not reloaded.
func notAgain() (*config.Invocation, config.Config, error) {
	return nil, config.Config{}, errors.New("the members of --ensemble are not reloaded: restart the process")
}

// ensembleConfig returns what the configurations of all members have in common.
func ensembleConfig(c config.Config, trail *auditTrail, log hclog.Logger) (cfg server.Config, err error) {
	cfg = serverConfig(c, log)
	cfg.Listen, cfg.Audit, cfg.ArchiveBytes = "", trail.sink(), 0 // no archiver runs here
	cfg.Auth.SASL, err = (&mechanisms{log: log.Named("sasl")}).apply(&c)
	return cfg, err
}
