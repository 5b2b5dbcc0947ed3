package main

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
)

// The archive of a server that nobody has written to can be restored, so that a standby can follow
// it.
func TestArchive_OfAnIdleServer(t *testing.T) {
	url := "file:///" + strings.TrimPrefix(filepath.ToSlash(t.TempDir()), "/")
	launch(t, "serve", "--data-dir", t.TempDir(), "--client-port", "0", "-o", "admin.enableServer=false",
		"-o", "gozkd.archive.url="+url, "-o", "gozkd.archive.intervalMs=100")
	await(t, "a restore", func() error {
		var said strings.Builder
		if run("gozkd", []string{"restore", url, "--into", filepath.Join(t.TempDir(), "new")}, outside(&said, &said)) != 0 {
			return errors.New(said.String())
		}
		return nil
	})
}

// A storage that blocks a write for ever does not prevent the server's end.
func TestArchiver_StopsWithoutTheStorage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cancelled, began := false, time.Now()
		a := &archiver{log: hclog.NewNullLogger(), cancel: func() { cancelled = true }, done: make(chan struct{})}
		a.stop()
		a.stop() // as serve does
		if !cancelled || time.Since(began) != stopTime {
			t.Errorf("cancelled: %v, waited for %v", cancelled, time.Since(began))
		}
	})
}
