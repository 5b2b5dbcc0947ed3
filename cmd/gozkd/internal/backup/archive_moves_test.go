package backup_test

import (
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/backup"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/cli"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/config"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/moving"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/zkdata"
	"github.com/gozkd/gozkd/datatree"
)

// Package moving imports package backup.
func init() { backup.ToZooKeeperAndBack = toZooKeeperAndBack }

// toZooKeeperAndBack exports a data directory, imports the result, and returns the state after
// another export.
func toZooKeeperAndBack(t *testing.T, dir string) *datatree.Tree {
	t.Helper()
	place := t.TempDir()
	at := func(name string) string { return filepath.Join(place, name) }
	getenv := func(string) string { return "" }
	for _, step := range []struct {
		main cli.Main
		args []string
	}{
		{moving.Export, []string{"--zookeeper", at("out"), "--from", dir}},
		{moving.Import, []string{at("out"), "--into", at("in")}},
		{moving.Export, []string{"--zookeeper", at("again"), "--from", at("in")}},
	} {
		env := cli.Env{In: strings.NewReader(""), Out: io.Discard, Err: t.Output(), Getenv: getenv, Server: config.LocalServer(getenv, nil)}
		if status := step.main(t.Context(), step.args, env); status != cli.OK {
			t.Fatalf("%v: status %d", step.args, status)
		}
	}
	tree, _, err := zkdata.ReadDirectory(t.Context(), at("again"), "")
	if err != nil {
		t.Fatal(err)
	}
	return tree
}
