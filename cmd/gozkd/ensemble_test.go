package main

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/config"
	"github.com/gozkd/gozkd/consensus"
	"github.com/gozkd/gozkd/internal/cluster"
	"github.com/gozkd/gozkd/internal/testkit/watchdog"
)

// No archiver runs with --ensemble. So the members drop their log after a checkpoint, although an
// archive is configured.
func TestEnsemble_KeepsNoLogForAnArchive(t *testing.T) {
	dir, place := t.TempDir(), t.TempDir()
	args := []string{"--data-dir", dir, "--client-port", "0", "-o", "snapCount=10", "-o", "gozkd.archive.url=file://" + place}
	_, c, err := config.Load(args, func(string) string { return "" }, nil)
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := ensembleConfig(1, c, nil, hclog.NewNullLogger())
	if err != nil {
		t.Fatal(err)
	}
	ensemble, err := cluster.Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := ensemble.Close(); err != nil {
			t.Error(err)
		}
	}()
	server := ensemble.Members()[0].Server()
	conn, late := connect(t, ensemble.ConnectString()), watchdog.Context(t, time.Minute)
	first := server.Backups().LogPosition().Applied
	for i := 0; ; i++ {
		if _, err := conn.Create(fmt.Sprintf("/%d", i), nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
			t.Fatal(err)
		}
		if _, err := server.Backups().ReplicatedLog(first, 1); errors.Is(err, consensus.ErrCompacted) {
			return
		} else if err != nil || late.Err() != nil {
			t.Fatalf("after %d writes entry %d is still in the log: %v", i+1, first, err)
		}
	}
}
