package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/gozkd/gozkd/test/compat/server"
)

const serverNames = "zookeeper-3.8, zookeeper-3.9 or gozkd"

// startTimeout bounds the start of a server, installation included.
const startTimeout = 10 * time.Minute

// starter starts servers by name, and builds gozkd once.
type starter struct {
	root, binary string
	tempDir      string
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
	return k
}

func (s *starter) start(ctx context.Context, name string) (*server.Process, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	switch name {
	case "zookeeper-3.8":
		return server.StartZooKeeper(ctx, server.Debian, server.Options{Keys: keys()})
	case "zookeeper-3.9":
		return server.StartZooKeeper(ctx, server.Maven, server.Options{Keys: keys()})
	case "gozkd":
		if s.binary == "" {
			dir, err := os.MkdirTemp("", "gozkd-diff-")
			if err != nil {
				return nil, err
			}
			s.tempDir = dir
			if s.binary, err = server.BuildGozkd(ctx, s.root, dir); err != nil {
				return nil, err
			}
		}
		return server.StartGozkd(ctx, s.binary, server.Options{Keys: keys(), Memory: true})
	}
	return nil, fmt.Errorf("no server %q: know %s", name, serverNames)
}

// cleanUp removes the binaries that start has built.
func (s *starter) cleanUp() error {
	if s.tempDir == "" {
		return nil
	}
	return os.RemoveAll(s.tempDir)
}
