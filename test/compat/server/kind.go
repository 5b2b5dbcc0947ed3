package server

import (
	"context"
	"strings"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/compat/install"
)

// Names of kinds of servers.
const (
	Gozkd         = "gozkd"
	ZooKeeper38   = zooKeeperDash + Debian
	ZooKeeper39   = zooKeeperDash + Maven
	KindNames     = ZooKeeper38 + ", " + ZooKeeper39 + " or " + Gozkd
	zooKeeperDash = "zookeeper-"
)

// Kind is a program that can be started as a server or as an ensemble.
type Kind struct {
	Name    string
	binary  string // of gozkd
	version string // of ZooKeeper; empty: gozkd
}

// KindNamed returns the kind with this name. binary is the gozkd to start; if it is empty, gozkd is
// built into dir, with these flags. An error ends the work (see package must).
func KindNamed(ctx context.Context, name, binary, dir string, flags ...string) Kind {
	k := Kind{Name: name, binary: binary}
	switch version, found := strings.CutPrefix(name, zooKeeperDash); {
	case name == Gozkd && binary == "":
		k.binary = must.Get(BuildGozkd(ctx, install.Root(ctx), dir, flags...))
	case name == Gozkd:
	case found && (version == Debian || version == Maven):
		k.version = version
	default:
		must.Failf("no server %q: know %s", name, KindNames)
	}
	return k
}

// Kinds returns the kinds that a comma-separated list names, or all, as KindNamed does.
func Kinds(ctx context.Context, list, binary, dir string) (kinds []Kind) {
	if list == "all" {
		list = ZooKeeper38 + "," + ZooKeeper39 + "," + Gozkd
	}
	for name := range strings.SplitSeq(list, ",") {
		kinds = append(kinds, KindNamed(ctx, name, binary, dir))
	}
	return kinds
}

// Twins returns the ZooKeeper that gozkd must equal, and gozkd, as KindNamed does.
func Twins(ctx context.Context, binary, dir string) [2]Kind {
	return [2]Kind{KindNamed(ctx, ZooKeeper39, "", dir), KindNamed(ctx, Gozkd, binary, dir)}
}

// Binary returns the gozkd that the kind starts; "" for ZooKeeper.
func (k *Kind) Binary() string { return k.binary }

// Start is StartGozkd or StartZooKeeper.
func (k *Kind) Start(ctx context.Context, opts Options) (*Process, error) {
	if k.version == "" {
		return StartGozkd(ctx, k.binary, opts)
	}
	return StartZooKeeper(ctx, k.version, opts)
}

// StartEnsemble is StartGozkdEnsemble or StartZooKeeperEnsemble.
func (k *Kind) StartEnsemble(ctx context.Context, opts EnsembleOptions) (*Ensemble, error) {
	if k.version == "" {
		return StartGozkdEnsemble(ctx, k.binary, opts)
	}
	return StartZooKeeperEnsemble(ctx, k.version, opts)
}
