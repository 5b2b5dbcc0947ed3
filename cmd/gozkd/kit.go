package main

import (
	"context"
	"errors"

	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/config"
	"github.com/gozkd/gozkd/internal/cluster"
	"github.com/gozkd/gozkd/internal/cluster/remote"
)

// serveKit runs servers for tests, all in this process, until stop ends.
func serveKit(stop context.Context, inv *config.Invocation, log hclog.Logger) (err error) {
	common := serverConfig(inv.Config, log)
	common.Listen = "" // each has its own, and Dir too
	l, err := cluster.Start(stop, cluster.Config{
		Members: inv.Members(), Host: inv.Config.ClientPortAddress, ClientPort: inv.Config.ClientPort, Dir: inv.Config.DataDir,
		Server: common, Logger: log,
	})
	if err != nil {
		if stop.Err() != nil {
			return nil // stopped before they were ready, as asked
		}
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	where := ports{Client: l.ConnectString()}
	for _, m := range l.Members() {
		where.Members = append(where.Members, memberPort{m.ID(), m.Address()})
	}
	if inv.Faults {
		faults, err := remote.Start(l, inv.FaultsPort, log.Named("faults"))
		if err != nil {
			return err
		}
		defer func() {
			if err := faults.Close(); err != nil {
				log.Warn("faults over HTTP did not end well", "error", err)
			}
		}()
		where.Faults = faults.URL()
	}
	log.Info("all members serve", "connect", where.Client)
	if inv.PortFile != "" {
		if err := writePortFile(inv.PortFile, where); err != nil {
			return err
		}
	}
	select {
	case err := <-l.Failed():
		return err
	case <-stop.Done():
		log.Info("stopping")
		return nil
	}
}
