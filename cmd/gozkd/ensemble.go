package main

import (
	"context"
	"errors"

	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/config"
	"github.com/gozkd/gozkd/internal/cluster"
)

// serveEnsemble runs all members of an ensemble in this process until stop ends or a member fails.
func serveEnsemble(
	stop context.Context, inv *config.Invocation, c config.Config, trail *auditTrail, log hclog.Logger,
) (err error) {
	cfg, err := ensembleConfig(inv.Ensemble, c, trail, log)
	if err != nil {
		return err
	}
	ensemble, err := cluster.Start(stop, cfg)
	if err != nil {
		if stop.Err() != nil {
			return nil // stopped before the members were ready
		}
		return err
	}
	defer func() { err = errors.Join(err, ensemble.Close()) }()
	where := ensemble.Ports()
	log.Info("all members serve", "connect", where.Client)
	if err := where.Write(inv.PortFile); err != nil {
		return err
	}
	defer log.Info("stopping")
	return ensemble.Await(stop)
}

// ensembleConfig returns the configuration of n members.
func ensembleConfig(n int, c config.Config, trail *auditTrail, log hclog.Logger) (cfg cluster.Config, err error) {
	cfg = cluster.Config{
		Members: n, Host: c.ClientPortAddress, ClientPort: c.ClientPort, Dir: c.Server.Dir, Server: serverConfig(c, log),
		Plain: true, Logger: log,
	}
	cfg.Server.Listen, cfg.Server.Audit, cfg.Server.ArchiveBytes = "", trail.sink(), 0 // no archiver runs here
	cfg.Server.Auth.SASL, err = (&mechanisms{log: log.Named("sasl")}).apply(&c)
	return cfg, err
}
