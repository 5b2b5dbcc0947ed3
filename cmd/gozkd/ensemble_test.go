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
	"github.com/gozkd/gozkd/internal/testkit/watchdog"
)

// No archiver runs with --ensemble. So the members drop their log after a checkpoint, although an
// archive is configured.
func TestNewMembers_KeepNoLogForAnArchive(t *testing.T) {
	dir, place := t.TempDir(), t.TempDir()
	args := []string{"--data-dir", dir, "--client-port", "0", "-o", "snapCount=10", "-o", "gozkd.archive.url=file://" + place}
	_, c, err := config.Load(args, func(string) string { return "" }, nil)
	if err != nil {
		t.Fatal(err)
	}
	servers, addresses, err := newMembers(t.Context(), 1, c, nil, hclog.NewNullLogger())
	if err != nil {
		t.Fatal(err)
	}
	if err := servers[0].Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := servers[0].Close(); err != nil {
			t.Error(err)
		}
	}()
	conn, late := connect(t, addresses[0]), watchdog.Context(t, time.Minute)
	first := servers[0].Backups().LogPosition().Applied
	for i := 0; ; i++ {
		if _, err := conn.Create(fmt.Sprintf("/%d", i), nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
			t.Fatal(err)
		}
		if _, err := servers[0].Backups().ReplicatedLog(first, 1); errors.Is(err, consensus.ErrCompacted) {
			return
		} else if err != nil || late.Err() != nil {
			t.Fatalf("after %d writes entry %d is still in the log: %v", i+1, first, err)
		}
	}
}
