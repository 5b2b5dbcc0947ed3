package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/config"
	"github.com/gozkd/gozkd/consensus"
	"github.com/gozkd/gozkd/internal/testkit/watchdog"
	"github.com/gozkd/gozkd/server"
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
	cfg, err := ensembleConfig(c, nil, hclog.NewNullLogger())
	if err != nil {
		t.Fatal(err)
	}
	cfg.Listen = "127.0.0.1:0"
	server, err := server.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	}()
	conn, late := connect(t, server.Addr().String()), watchdog.Context(t, time.Minute)
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

// All members end when one cannot start, although the others wait for their majority.
func TestEnsemble_MembersThatCannotStart(t *testing.T) {
	dir := t.TempDir()
	for _, id := range []string{"2", "3"} {
		if err := os.MkdirAll(filepath.Join(dir, id), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, id, "checkpoint.db"), []byte("damaged"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, c, err := config.Load([]string{"--data-dir", dir, "--client-port", "0"}, func(string) string { return "" }, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = serveEnsemble(watchdog.Context(t, time.Minute), &config.Invocation{Ensemble: 3}, c, nil, hclog.NewNullLogger())
	if err == nil || !strings.Contains(err.Error(), "corrupt checkpoint") || !strings.HasPrefix(err.Error(), "member ") {
		t.Errorf("%v, want the name of a member that cannot start, and why", err)
	}
}
