package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"

	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/config"
	"github.com/gozkd/gozkd/internal/ensemble"
	"github.com/gozkd/gozkd/internal/parallel"
	"github.com/gozkd/gozkd/internal/portfile"
	"github.com/gozkd/gozkd/server"
)

// localEnsemble runs all members of an ensemble in this process.
type localEnsemble struct {
	*ensemble.Ensemble
	inv    *config.Invocation
	config config.Config
	trail  *auditTrail
	common server.Config  // of all members
	pages  sync.WaitGroup // of members, with sessions whose end takes a majority

	mu      sync.Mutex        // guards the rest
	admins  map[string]string // by name, of the members that serve: the admin endpoint; "": not served
	written portfile.Ports    // the content of the port file
}

// serveEnsemble runs an ensemble until stop ends or a member fails. A full disk stops one member.
func serveEnsemble(
	stop context.Context, inv *config.Invocation, c config.Config, trail *auditTrail, log hclog.Logger,
) error {
	addresses := ensemble.Addresses(c.ClientPortAddress, c.ClientPort, inv.Ensemble)
	places, err := ensemble.New(c.Server.Dir, addresses, false, "--client-port, or clientPort in zoo.cfg")
	if err != nil {
		return err
	}
	defer places.Close()
	e := &localEnsemble{Ensemble: places, inv: inv, config: c, trail: trail, admins: make(map[string]string)}
	if e.common, err = ensembleConfig(c, trail, log); err != nil {
		return err
	}
	members, err := e.listen()
	if err != nil {
		return err
	}
	defer log.Info("all members have ended")
	defer func() { e.written.Remove(inv.PortFile) }()
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

type localMember struct {
	*ensemble.Member
	of             *localEnsemble
	clients, peers net.Listener // of the next server; nil: not open yet, or it has none
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

// run runs one server after the other, until ctx ends or one fails: after a full disk the next one
// starts when there is room. The admin endpoints of the members are at consecutive ports.
func (m *localMember) run(ctx context.Context) error {
	closed := sync.OnceFunc(m.of.pages.Done)
	defer closed()
	cfg, c := m.of.common, m.of.config
	cfg.MemberID, cfg.Members = uint8(m.ID()), m.of.Lines()
	cfg.Dir, cfg.LogDir = m.Dir(), m.Own(cfg.LogDir)
	if m.peers != nil {
		cfg.Logger, cfg.PeerDial = cfg.Logger.Named(m.Host()), m.DialPeer
	}
	if c.Server.Dir, c.Server.LogDir = cfg.Dir, cfg.LogDir; c.AdminPort > 0 {
		c.AdminPort += m.ID() - 1
	}
	same := func() (*config.Invocation, config.Config, error) { return m.of.inv, c, nil } // see notAgain
	w := roomWait{inv: m.of.inv, c: c, again: same, space: spaceAt, reopen: m.of.trail.reopen, log: cfg.Logger}
	return w.serve(ctx, systemd{cfg.Logger}, func(<-chan os.Signal) (err error) {
		if m.clients == nil {
			if m.clients, m.peers, err = m.Listen(); err != nil {
				return err
			}
		}
		cfg.Listener, cfg.PeerListener, m.clients = m.clients, m.peers, nil
		defer m.of.ends(m)
		return m.serve(ctx, cfg, c, closed)
	})
}

// serve runs a server. It calls closed when ctx has ended and the server has no open pages.
func (m *localMember) serve(ctx context.Context, cfg server.Config, c config.Config, closed func()) error {
	s, err := server.New(cfg)
	if err != nil {
		return errors.Join(err, cfg.Listener.Close())
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
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.admins[m.Name()] = admin; len(e.admins) < len(e.Members) {
		return nil
	}
	where := e.Ports()
	var served []string
	for _, m := range e.Members {
		if admin := e.admins[m.Name()]; admin != "" {
			served = append(served, admin)
		}
	}
	where.Admin = strings.Join(served, ",")
	e.common.Logger.Info("all members serve", "connect", where.Client, "admin", where.Admin)
	if err := where.Write(e.inv.PortFile); err != nil {
		return err
	}
	e.written = where
	return nil
}

// ends notes that a server of a member has ended.
func (e *localEnsemble) ends(m *localMember) {
	e.mu.Lock()
	delete(e.admins, m.Name())
	e.mu.Unlock()
	m.Hold()
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
