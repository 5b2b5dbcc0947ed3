package main

import (
	"cmp"
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/config"
	"github.com/gozkd/gozkd/internal/vfs"
)

// roomWait waits for room on the disks of a server that has stopped.
type roomWait struct {
	inv   *config.Invocation // with c: what was read last
	c     config.Config
	again loader
	free  func(dir string) (bytes int64, known bool)
	// SIGHUP: look for room now, and reopen the audit log, which another program may have renamed.
	hangup <-chan os.Signal
	reopen func() error
	log    hclog.Logger
}

// serve calls one, which serves until stop ends or the server fails, and calls it again whenever
// there is room after a full disk. No SIGHUP ends the process meanwhile.
func (w *roomWait) serve(stop context.Context, manager systemd, one func(hangup <-chan os.Signal) error) error {
	hangup := make(chan os.Signal, 1) // a pending signal stands for later signals
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	w.hangup = hangup
	for {
		err := one(hangup)
		if !vfs.Full(err) || stop.Err() != nil {
			return err
		}
		w.log.Error("a disk is full, so this server has stopped; it starts again when there is room", "error", err)
		manager.notify("STATUS=waiting for room")
		unwatch := manager.watch(func() {})
		again := w.run(stop)
		unwatch()
		if stop.Err() != nil {
			return nil
		} else if !again {
			return err
		}
	}
}

// run waits until the disks of the data and of the log have room, or until stop ends. It returns
// false if nobody can tell, or if stop has ended. It reads the configuration each time it looks,
// because it may have changed since the start, and may name another disk now.
func (w *roomWait) run(stop context.Context) bool {
	for n := 0; ; n++ {
		select { // also before the first look: not only bytes can be used up, and not only here
		case <-stop.Done():
			return false
		case <-w.hangup:
			if err := w.reopen(); err != nil {
				w.log.Warn("the audit log was not closed well before it is opened again", "error", err)
			}
		case <-time.After(time.Second):
		}
		if inv, c, err := readAgain(w.again, w.inv.File); err == nil {
			w.inv, w.c = inv, c
		} else if n%roomLines == 0 {
			w.log.Warn("the configuration is not read again before the server starts again", "error", err)
		}
		full := ""
		for _, dir := range []string{w.c.Server.Dir, cmp.Or(w.c.Server.LogDir, w.c.Server.Dir)} {
			free, known := w.free(dir)
			if !known {
				return false
			}
			if free < leastRoom {
				full = dir
			}
		}
		if full == "" {
			return true
		}
		if n%roomLines == 0 {
			w.log.Warn("waiting for room: free space on the disk of this directory",
				"directory", full, "needed_mib", leastRoom>>20)
		}
	}
}

const (
	// leastRoom is free on a disk before a server starts again: a segment of the log, and as much
	// for a checkpoint.
	leastRoom = 128 << 20
	// roomLines is after how many seconds the log says again that the server waits.
	roomLines = 60
)
