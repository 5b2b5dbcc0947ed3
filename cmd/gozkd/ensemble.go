package main

import (
	"context"
	"errors"
	"fmt"
	"net"
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

// localEnsemble runs all members of an ensemble in this process.
type localEnsemble struct {
	*ensemble.Ensemble
	inv    *config.Invocation
	config config.Config
	common server.Config  // of all members
	serve  atomic.Int32   // members
	admins []string       // their admin endpoints; "": not served
	pages  sync.WaitGroup // of members, with sessions whose end takes a majority
}

// serveEnsemble runs an ensemble until stop ends or a member fails.
func serveEnsemble(
	stop context.Context, inv *config.Invocation, c config.Config, trail *auditTrail, log hclog.Logger,
) error {
	addresses := ensemble.Addresses(c.ClientPortAddress, c.ClientPort, inv.Ensemble)
	places, err := ensemble.New(c.Server.Dir, addresses, false, "--client-port, or clientPort in zoo.cfg")
	if err != nil {
		return err
	}
	defer places.Close()
	e := &localEnsemble{Ensemble: places, inv: inv, config: c, admins: make([]string, inv.Ensemble)}
	if e.common, err = ensembleConfig(c, trail, log); err != nil {
		return err
	}
	members, err := e.listen()
	if err != nil {
		return err
	}
	defer log.Info("all members have ended")
	defer func() {
		if int(e.serve.Load()) == len(members) { // the file was written
			e.Ports().Remove(inv.PortFile)
		}
	}()
	running, cancel := context.WithCancel(stop)
	e.pages.Add(len(members))
	return errors.Join(parallel.Each(len(members), len(members), func(i int) error {
		defer cancel() // without this member the others need not run
		if err := members[i].run(running); err != nil {
			return fmt.Errorf("%s: %w", members[i].Name(), err)
		}
		return nil
	})...)
}

// localMember is a member of a localEnsemble.
type localMember struct {
	*ensemble.Member
	of             *localEnsemble
	clients, peers net.Listener // peers is nil if it has none
}

// listen opens the ports of all members, before the first admin endpoint could take one of them.
func (e *localEnsemble) listen() (members []*localMember, err error) {
	for _, place := range e.Members {
		m := &localMember{Member: place, of: e}
		if m.clients, m.peers, err = m.Listen(); err != nil {
			for _, before := range members {
				err = errors.Join(err, before.clients.Close())
			}
			return nil, fmt.Errorf("%s: %w", m.Name(), err)
		}
		members = append(members, m)
	}
	return members, nil
}

// run runs the member until ctx ends or the member fails. The first admin endpoint is at the
// configured port, those of the other members are at the following ports.
func (m *localMember) run(ctx context.Context) error {
	closed := sync.OnceFunc(m.of.pages.Done)
	defer closed()
	cfg, c := m.of.common, m.of.config
	cfg.MemberID, cfg.Listener, cfg.Members = uint8(m.ID()), m.clients, m.of.Lines()
	cfg.Dir, cfg.LogDir = m.Dir(), m.Own(cfg.LogDir)
	if m.peers != nil {
		cfg.Logger, cfg.PeerListener, cfg.PeerDial = cfg.Logger.Named(m.Host()), m.peers, m.DialPeer
	}
	s, err := server.New(cfg)
	if err != nil {
		return errors.Join(err, m.clients.Close())
	}
	if c.Server.Dir = cfg.Dir; c.AdminPort > 0 {
		c.AdminPort += m.ID() - 1
	}
	r := &reloader{server: s, tls: &portTLS{log: cfg.Logger}, again: notAgain, started: c, last: c, log: cfg.Logger}
	ends := openEndpoints(ctx, m.of.inv, c, s, r, nil, cfg.Logger)
	var ended error
	if err = s.Start(ctx); err == nil {
		if err = s.Ready(ctx); err == nil {
			err = m.of.serves(m, ends.admin)
		}
		if err == nil {
			select {
			case err = <-s.Err():
			case <-ctx.Done():
			}
		}
		if ends.web.Close(); err == nil {
			closed()
			m.of.pages.Wait()
		}
		ended = s.Abort() // no member hands over its lead, since no member remains to take it
	}
	if ctx.Err() != nil {
		err = nil // stopped, or another member failed first
	}
	return errors.Join(err, ends.close(), ended)
}

// serves notes that a member serves with an admin endpoint. The last one writes the port file.
func (e *localEnsemble) serves(m *localMember, admin string) error {
	e.admins[m.ID()-1] = admin
	if int(e.serve.Add(1)) < len(e.admins) {
		return nil
	}
	where := e.Ports()
	where.Admin = strings.Join(slices.DeleteFunc(e.admins, func(admin string) bool { return admin == "" }), ",")
	e.common.Logger.Info("all members serve", "connect", where.Client, "admin", where.Admin)
	return where.Write(e.inv.PortFile)
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
