package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/cli"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/config"
	"github.com/gozkd/gozkd/server"
)

// serve runs an ensemble, or a server until a signal ends it or its disk fails. again reads the
// configuration once more.
func serve(inv *config.Invocation, again func() (*config.Invocation, error), env cli.Env) error {
	log := hclog.New(&hclog.LoggerOptions{
		Name: "gozkd", Level: hclog.LevelFromString(inv.Config.LogLevel), Output: env.Err, JSONFormat: inv.LogJSON,
	})
	stop, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if env.Getenv("GOGC") == "" {
		// Stopped by the signal that ends the program, which does not wait for tuneGC.
		go tuneGC(stop)
	}
	if inv.Ensemble > 0 {
		return serveEnsemble(stop, inv, log)
	}
	return serveOne(stop, cancel, inv, again, log)
}

// serveOne runs a server until stop ends. After kill, the next signal ends the process at once.
func serveOne(
	stop context.Context, kill func(), inv *config.Invocation, again func() (*config.Invocation, error), log hclog.Logger,
) (err error) {
	s, err := server.New(serverConfig(inv.Config, log))
	if err != nil {
		return err
	}
	m := systemd{log: log.Named("systemd")}
	r := &reloader{server: s, again: again, file: inv.File, started: inv.Config, last: inv.Config, manager: m, log: log}
	hangup := make(chan os.Signal, 1) // a pending signal stands for later signals
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	ends := openEndpoints(stop, inv, s, r, log) // before the start, so that clients can ask for the progress
	defer func() { err = errors.Join(err, ends.close()) }()
	alive, dead := context.WithCancel(context.Background())
	watched := make(chan struct{})
	// Stopped by dead, which is followed by waiting for watched.
	go func() {
		defer close(watched)
		m.watchdog(alive, func() { s.Status() })
	}()
	defer func() { dead(); <-watched }()

	m.notify("STATUS=looking for the other servers, or reading the data")
	if err := s.Start(stop); err != nil {
		if stop.Err() != nil {
			return nil // stopped before it was ready
		}
		return err
	}
	if err := founded(inv.Config); err != nil {
		log.Warn("the file initialize stays", "error", err)
	}
	if inv.PortFile != "" {
		if err := writePortFile(inv.PortFile, ports{Client: s.ConnectString(), Admin: ends.admin, Metrics: ends.metrics}); err != nil {
			return errors.Join(err, s.Close())
		}
	}
	r.serves(s.ConnectString())
	for {
		select {
		case <-hangup:
			_, _ = r.reload() // reload logs the outcome
		case <-stop.Done():
			kill()
			log.Info("stopping")
			r.stops("stopping")
			return s.Close()
		case err := <-s.Err():
			r.stops("failed")
			return errors.Join(err, s.Close())
		}
	}
}

// ports is the content of a port file.
type ports struct {
	Client  string       `json:"client"` // connect string
	Members []memberPort `json:"members,omitempty"`
	Admin   string       `json:"admin,omitempty"`   // URL of the admin commands
	Metrics string       `json:"metrics,omitempty"` // URL of the endpoint for Prometheus
}

type memberPort struct {
	ID     int    `json:"id"`
	Client string `json:"client"`
}

// writePortFile writes a JSON line with the addresses. The file appears complete, so that a process
// waiting for the file can read it at once.
func writePortFile(path string, where ports) error {
	line, err := json.Marshal(where)
	if err != nil {
		return err
	}
	tmp := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".tmp")
	if err := os.WriteFile(tmp, append(line, '\n'), 0o644); err != nil {
		return fmt.Errorf("port file: %w", err)
	}
	if err := os.Rename(tmp, path); err != nil {
		return fmt.Errorf("port file: %w", err)
	}
	return nil
}
