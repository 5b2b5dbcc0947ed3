package main

import (
	"context"
	"errors"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/compat/diff/exchange"
	"github.com/gozkd/gozkd/test/compat/diff/generate"
	"github.com/gozkd/gozkd/test/compat/server"
)

// startTimeout bounds the start of a server, installation included.
const startTimeout = 10 * time.Minute

// starter starts servers.
type starter struct {
	members int            // of each ensemble; 1: a standalone server
	format  string         // of the stores for TLS; empty: without TLS
	dir     string         // of the stores
	stores  *server.Stores // nil: not made yet, or not needed
}

// keys returns server.Defaults with timeouts so long that no session expires and no container is
// collected during a sequence. Writes need not reach the disk.
func keys() map[string]string {
	k := server.Defaults()
	k["tickTime"] = "2000"
	k["minSessionTimeout"] = "20000"
	k["maxSessionTimeout"] = "60000"
	k["znode.container.checkIntervalMs"] = "3600000"
	k["enforceQuota"] = "true"
	k["forceSync"] = "no"
	k["gozkd.watchReplayKB"] = "-1" // ZooKeeper sends no missed events
	return k
}

// side is one of the two servers, or ensembles, and the player that plays on it.
type side struct {
	*exchange.Player
	server interface {
		Name() string
		Log() string
		Stop() error
	}
	processes []*server.Process
}

// stop ends the servers.
func (s *side) stop() error { return errors.Join(s.Close(), s.server.Stop()) }

// play starts a server or an ensemble.
func (s *starter) play(ctx context.Context, kind server.Kind) *side {
	if s.members > 1 {
		return s.ensemble(ctx, kind)
	}
	p := s.start(ctx, kind)
	player := exchange.NewPlayer(p.Addr())
	if s.stores != nil {
		player = exchange.NewPlayer(p.SecureAddr())
		player.TLS = s.stores.Client()
	}
	return &side{player, p, []*server.Process{p}}
}

// ensemble starts an ensemble. Its leader is the first member that the player knows.
func (s *starter) ensemble(ctx context.Context, kind server.Kind) *side {
	opts := server.EnsembleOptions{Members: s.members, Keys: keys()}
	startCtx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	e := must.Get(kind.StartEnsemble(startCtx, opts))
	leader := must.Get(e.Leader(ctx))
	side := &side{Player: exchange.NewPlayer(leader.Addr()), server: e}
	for _, m := range e.Members {
		side.processes = append(side.processes, m.Process)
		if m != leader {
			side.Members = append(side.Members, m.Addr())
		}
	}
	return side
}

// sequence returns the nth sequence of seed.
func (s *starter) sequence(seed, n uint64) *exchange.Sequence {
	if s.members > 1 {
		return generate.Ensemble(seed, n, s.members)
	}
	return generate.Sequence(seed, n)
}

func (s *starter) start(ctx context.Context, kind server.Kind) *server.Process {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	opts := server.Options{Keys: keys(), Memory: true, Format: s.format}
	if s.format != "" {
		if s.stores == nil {
			stores := server.MakeStores(ctx, s.dir)
			s.stores = &stores
		}
		opts.TLS = s.stores
	}
	return must.Get(kind.Start(ctx, opts))
}
