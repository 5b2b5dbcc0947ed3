package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gozkd/gozkd/internal/vfs"
)

// With db.autocreate=false, three new servers form an ensemble after gozkd init, and the file that
// init has written is gone as soon as they serve.
func TestServe_InitializeFile(t *testing.T) {
	for _, logDir := range []bool{false, true} {
		dir := t.TempDir()
		cfg := "clientPort=0\nadmin.enableServer=false\ndb.autocreate=false\ndataDir=" + filepath.ToSlash(filepath.Join(dir, "data")) + "\n"
		if logDir {
			cfg += "dataLogDir=" + filepath.ToSlash(filepath.Join(dir, "log")) + "\n"
		}
		file := filepath.Join(dir, "zoo.cfg")
		if err := os.WriteFile(file, []byte(cfg), 0o644); err != nil {
			t.Fatal(err)
		}
		var stdout, stderr strings.Builder
		if status := run("gozkd", []string{"init", "--configfile", file}, outside(&stdout, &stderr)); status != 0 {
			t.Fatal(status, stderr.String())
		}
		marker := filepath.Join(dir, "data", initializeFile)
		if logDir { // ZooKeeper's server looks there
			if err := os.Rename(marker, filepath.Join(dir, "log", initializeFile)); err != nil {
				t.Fatal(err)
			}
			marker = filepath.Join(dir, "log", initializeFile)
		}
		p := launch(t, "serve", file)
		if _, err := os.Stat(marker); !os.IsNotExist(err) {
			t.Errorf("%s after the start: %v", marker, err)
		}
		put(t, p.ports.Client, "/a")
		if status := p.Stop(syscall.SIGTERM); status != 0 {
			t.Errorf("exit status %d", status)
		}
		get(t, launch(t, "serve", file).ports.Client, "/a") // it has data, and needs no file
	}
}

// A server does not begin with an empty tree next to a ZooKeeper server's data. Once it has data of
// its own, it starts.
func TestServe_ZooKeeperData(t *testing.T) {
	dir := t.TempDir()
	old := filepath.Join(dir, "log", "version-2")
	if err := os.MkdirAll(old, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(old, "log.1"), []byte("ZKLG"), 0o644); err != nil {
		t.Fatal(err)
	}
	args := []string{"serve", "--data-dir", filepath.Join(dir, "data"), "--client-port", "0", "-o", "dataLogDir=" + filepath.Join(dir, "log"), "-o", "admin.enableServer=false"}
	var stdout, stderr strings.Builder
	if status := run("gozkd", args, outside(&stdout, &stderr)); status != 1 {
		t.Errorf("exit status %d", status)
	}
	for _, want := range []string{filepath.Join(old, "log.1") + " holds the data of a ZooKeeper server", "move " + old + " away"} {
		if !strings.Contains(stderr.String(), want) {
			t.Errorf("said %s, not %q", &stderr, want)
		}
	}
	away := filepath.Join(dir, "away")
	if err := os.Rename(old, away); err != nil {
		t.Fatal(err)
	}
	p := launch(t, args...)
	if status := p.Stop(syscall.SIGTERM); status != 0 {
		t.Errorf("exit status %d", status)
	}
	if err := os.Rename(away, old); err != nil {
		t.Fatal(err)
	}
	launch(t, args...)
}

// A lone server that lost its data does not serve an empty tree. ZooKeeper 3.9.5 starts, and drops
// each client.
func TestServe_NoInitializeFile(t *testing.T) {
	dir := t.TempDir()
	var stdout, stderr strings.Builder
	args := []string{"serve", "--data-dir", dir, "--client-port", "0", "-o", "db.autocreate=false", "-o", "admin.enableServer=false"}
	if status := run("gozkd", args, outside(&stdout, &stderr)); status != 1 {
		t.Errorf("exit status %d", status)
	}
	if want := "data directory " + dir + " is empty, and this server may not begin with an empty tree"; !strings.Contains(stderr.String(), want) {
		t.Errorf("said %s, not %q", &stderr, want)
	}
}

// A server that had to wait, because nobody had run init on it, founds after init. Its log is no
// reason to refuse init: the server wrote it at its start, and it holds no data. While the server
// runs, init changes nothing.
func TestServe_InitializeLate(t *testing.T) {
	dir := t.TempDir()
	serve := []string{"serve", "--data-dir", dir, "--client-port", "0", "-o", "db.autocreate=false", "-o", "admin.enableServer=false"}
	try := func(args ...string) (int, string) {
		t.Helper()
		var stdout, stderr strings.Builder
		return run("gozkd", args, outside(&stdout, &stderr)), stdout.String() + stderr.String()
	}
	if status, said := try(serve...); status != 1 || !strings.Contains(said, "run gozkd init if the server is new") {
		t.Fatal(status, said)
	}
	if _, err := os.Stat(filepath.Join(dir, "wal")); err != nil {
		t.Fatal("the server has no log: ", err)
	}
	lock, err := vfs.OS{}.Lock(filepath.Join(dir, "LOCK"))
	if err != nil {
		t.Fatal(err)
	}
	if status, said := try("init", "--data-dir", dir); status != 1 {
		t.Error("init beside a server that runs: ", status, said)
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	if status, said := try("init", "--until", time.Now().Add(time.Hour).Format(time.RFC3339), "--data-dir", dir); status != 0 || !strings.Contains(said, "is ready for a new server") {
		t.Fatal(status, said)
	}
	p := launch(t, serve...)
	put(t, p.ports.Client, "/a")
	if status := p.Stop(syscall.SIGTERM); status != 0 {
		t.Errorf("exit status %d", status)
	}
	if err := os.Rename(filepath.Join(dir, "checkpoint.db"), filepath.Join(dir, "lost.db")); err != nil {
		t.Fatal(err)
	}
	if status, said := try("init", "--data-dir", dir); status != 1 || !strings.Contains(said, "init does not change the data of a server") {
		t.Error("init with the log of a server that had data: ", status, said)
	}
}

// As the guide says, a server whose ensemble is gone gets a new directory by init, and the backup
// by restore. The file of init is gone as soon as the server serves the data.
func TestInit_ThenRestore(t *testing.T) {
	dir := t.TempDir()
	old, fresh, file := filepath.Join(dir, "old"), filepath.Join(dir, "fresh"), filepath.Join(dir, "backup.db")
	p := launch(t, "serve", "--data-dir", old, "--client-port", "0", "-o", "admin.enableServer=false")
	put(t, p.ports.Client, "/a")
	if status := p.Stop(syscall.SIGTERM); status != 0 {
		t.Errorf("exit status %d", status)
	}
	for _, args := range [][]string{
		{"backup", "--from", old, file}, {"init", "--myid", "7", "--data-dir", fresh}, {"restore", "--from", file, "--data-dir", fresh},
	} {
		var stdout, stderr strings.Builder
		if status := run("gozkd", args, outside(&stdout, &stderr)); status != 0 {
			t.Fatal(args, status, stderr.String())
		}
	}
	p = launch(t, "serve", "--data-dir", fresh, "--client-port", "0", "-o", "admin.enableServer=false", "-o", "db.autocreate=false")
	get(t, p.ports.Client, "/a")
	if _, err := os.Stat(filepath.Join(fresh, initializeFile)); !os.IsNotExist(err) {
		t.Errorf("%s after the start: %v", initializeFile, err)
	}
}
