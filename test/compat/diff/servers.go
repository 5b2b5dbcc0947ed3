package main

import (
	"context"
	"errors"
	"os"
	"slices"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/test/compat/diff/exchange"
	"github.com/gozkd/gozkd/test/compat/diff/generate"
	"github.com/gozkd/gozkd/test/compat/server"
)

// startTimeout bounds the start of a server, installation included.
const startTimeout = 10 * time.Minute

// starter starts servers.
type starter struct {
	kinds   map[string]server.Kind // by name
	members int                    // of each ensemble; 1: a standalone server
	format  string                 // of the stores for TLS; empty: without TLS
	tempDir string
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
func (s *starter) play(ctx context.Context, name string) *side {
	if s.members > 1 {
		return s.ensemble(ctx, name)
	}
	p := s.start(ctx, name)
	player := exchange.NewPlayer(p.Addr())
	if s.stores != nil {
		player = exchange.NewPlayer(p.SecureAddr())
		player.TLS = must.Get(s.stores.Client())
	}
	return &side{player, p, []*server.Process{p}}
}

// ensemble starts an ensemble. Its leader is the first member that the player knows.
func (s *starter) ensemble(ctx context.Context, name string) *side {
	opts := server.EnsembleOptions{Members: s.members, Keys: keys()}
	startCtx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	kind := s.kinds[name]
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

func (s *starter) start(ctx context.Context, name string) *server.Process {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	opts := server.Options{Keys: keys(), Memory: true, Format: s.format}
	if s.format != "" {
		if s.stores == nil {
			stores := must.Get(server.MakeStores(ctx, s.dir()))
			s.stores = &stores
		}
		opts.TLS = s.stores
	}
	kind := s.kinds[name]
	return must.Get(kind.Start(ctx, opts))
}

// dir returns the directory of the files that start makes.
func (s *starter) dir() string {
	if s.tempDir == "" {
		s.tempDir = must.Get(os.MkdirTemp("", "gozkd-diff-"))
	}
	return s.tempDir
}

// cleanUp removes the files that start has made.
func (s *starter) cleanUp() error {
	if s.tempDir == "" {
		return nil
	}
	return os.RemoveAll(s.tempDir)
}

// differences returns the allowed deviations of b from a.
func differences(nameA, nameB string) []exchange.Difference {
	if nameA == "zookeeper-3.9" && nameB == "zookeeper-3.8" {
		return olderRelease()
	}
	return exchange.Differences()
}

// olderRelease lists the deviations of ZooKeeper 3.8.0 from 3.9, as its release notes name them.
// Playing the two against each other shows that the comparison finds known differences, and nothing
// else.
func olderRelease() []exchange.Difference {
	on := func(m *exchange.Mismatch, ops ...proto.OpCode) bool {
		return m.Request != nil && slices.Contains(ops, m.Request.Op) && m.A != nil && m.B != nil && m.A.Kind == exchange.MessageReply
	}
	return []exchange.Difference{
		{
			ID: "3.9-event-zxid", // events carry the zxid of the change since 3.9
			Allows: func(_, _ *exchange.Transcript, m *exchange.Mismatch) bool {
				return m.A != nil && m.A.Kind == exchange.MessageEvent && m.Field == "zxid" && m.B.Field("zxid") == -1
			},
		},
		{
			ID: "3.9-watch-modes", Diverges: true, // up to 3.8 a path has one watch of a connection, and checks look at everybody's
			Allows: func(_, _ *exchange.Transcript, m *exchange.Mismatch) bool {
				return on(m, proto.OpCheckWatches, proto.OpRemoveWatches)
			},
		},
		{
			ID: "3.9-watch-events", Diverges: true, // because of the above an event is missing or is one too many
			Allows: func(_, _ *exchange.Transcript, m *exchange.Mismatch) bool {
				return m.A != nil && m.A.Kind == exchange.MessageEvent || m.B != nil && m.B.Kind == exchange.MessageEvent
			},
		},
		{
			ID: "3.9-ipv6", Diverges: true, // ids of scheme ip may be IPv6 addresses since 3.9.4
			Allows: func(_, _ *exchange.Transcript, m *exchange.Mismatch) bool {
				ops := []proto.OpCode{proto.OpCreate, proto.OpCreate2, proto.OpCreateContainer, proto.OpCreateTTL, proto.OpSetACL}
				return on(m, ops...) && m.B.Err() == proto.ErrInvalidACL && m.A.Err() != proto.ErrInvalidACL
			},
		},
		{
			ID: "3.9-multi", Diverges: true, // create2 in a multi keeps its type, and a bad mode fails the whole multi, since 3.8.2
			Allows: func(_, _ *exchange.Transcript, m *exchange.Mismatch) bool { return on(m, proto.OpMulti) },
		},
		{
			ID: "3.9-check", Diverges: true, // check outside a multi is answered with -6 since 3.9.3
			Allows: func(_, _ *exchange.Transcript, m *exchange.Mismatch) bool {
				return m.A != nil && m.A.Kind == exchange.MessageReply && m.A.Op == proto.OpCheck && m.A.Err() == proto.ErrUnimplemented
			},
		},
		{
			ID: "3.9-exists", // exists needs READ since 3.9.2
			Allows: func(_, _ *exchange.Transcript, m *exchange.Mismatch) bool {
				return on(m, proto.OpExists) && m.A.Err() == proto.ErrNoAuth && m.B.Err() == proto.OK
			},
		},
		{
			ID: "3.9-malformed", // up to 3.8 a write that cannot be decoded uses up a zxid
			Allows: func(_, _ *exchange.Transcript, m *exchange.Mismatch) bool {
				return len(m.Field) > 8 && m.Field[:8] == "order of"
			},
		},
	}
}
