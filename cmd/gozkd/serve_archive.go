package main

import (
	"context"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/archive"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/archive/store"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/backup"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/config"
	"github.com/gozkd/gozkd/server"
	"github.com/gozkd/gozkd/web"
)

// archiver archives the log of this process's server; nil: there is no archive.
type archiver struct {
	shipper *archive.Shipper
	place   store.Store
	log     hclog.Logger
	cancel  context.CancelFunc // nil: it does not run
	done    chan struct{}
}

// stopTime bounds the wait for the last writes, which a file system may block for ever.
const stopTime = 30 * time.Second

// baseBytes is how much of the log may follow the newest base.
const baseBytes = 1 << 30

// openArchiver prepares the configured archive, and sets what the server must know.
func openArchiver(c config.Config, cfg *server.Config, getenv func(string) string, log hclog.Logger) (*archiver, error) {
	if c.Archive.URL == "" {
		return nil, nil
	}
	place, err := store.Open(c.Archive.URL, getenv)
	if err != nil {
		return nil, err
	}
	log = log.Named("archive")
	a := &archiver{log: log, place: place, shipper: archive.New(archive.Config{
		Store: place, Logger: log, BaseBytes: baseBytes,
		Interval: c.Archive.Interval, BaseInterval: c.Archive.BaseInterval, Retention: c.Archive.Retention,
	})}
	cfg.ArchiveStats = a.shipper.Stats
	return a, nil
}

// history returns the archive's history of the server's ensemble, nil without an archive.
func (a *archiver) history(s *server.Server) web.History {
	if a == nil {
		return nil
	}
	return backup.NewHistory(a.place, func() uint64 { return s.Backups().LogPosition().Ensemble })
}

// start begins to archive the server's log.
func (a *archiver) start(s *server.Server) {
	if a == nil {
		return
	}
	var ctx context.Context
	ctx, a.cancel = context.WithCancel(context.Background())
	a.done = make(chan struct{})
	// Stopped and awaited by stop; if the storage blocks it, it ends with the process.
	go func() {
		defer close(a.done)
		// The first write of a new server alone changes no znode: an ensemble gets its number for
		// the archive with its first write. Of several members one writes by itself.
		if p := s.Backups().LogPosition(); p.Ensemble == 0 && p.Members <= 1 {
			if err := s.Multi(ctx, 0); err != nil && ctx.Err() == nil {
				a.log.Warn("the archive begins with the first write", "error", err)
			}
		}
		a.shipper.Run(ctx, s.Backups())
	}()
}

// stop archives what is left, while the server still runs.
func (a *archiver) stop() {
	if a == nil || a.cancel == nil {
		return
	}
	a.cancel()
	a.cancel = nil
	select {
	case <-a.done:
	case <-time.After(stopTime):
		a.log.Warn("the archive does not answer; the server stops without having archived the last writes", "waited", stopTime)
	}
}
