package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
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
	space func(dir string) (room vfs.Space, known bool)
	// SIGHUP: look for room now, and reopen the audit log, which another program may have renamed.
	hangup <-chan os.Signal
	reopen func() error
	log    hclog.Logger

	data map[string]int64 // see dataFiles: where the wait began
	dirs []string         // in which they were
	why  atomic.Value     // a string: why the server waits
}

// serve calls one, which serves until stop ends or the server fails, and calls it again whenever
// there is room after a full disk. No SIGHUP ends the process meanwhile or afterwards, while it
// still closes files.
func (w *roomWait) serve(stop context.Context, manager systemd, one func(hangup <-chan os.Signal) error) error {
	hangup := make(chan os.Signal, 1) // a pending signal stands for later signals
	signal.Notify(hangup, syscall.SIGHUP)
	w.hangup = hangup
	for {
		err := one(hangup)
		if !vfs.Full(err) || stop.Err() != nil {
			return err
		}
		w.log.Error("a disk is full, so this server has stopped; it starts again when there is room", "error", err)
		manager.notify("STATUS=waiting for room")
		w.why.Store("a disk is full: " + err.Error() + "; make room there")
		unwatch, unanswered := manager.watch(func() {}), w.answer(stop)
		again := w.run(stop)
		unanswered()
		unwatch()
		if stop.Err() != nil {
			return nil
		} else if !again {
			return err
		}
	}
}

// answer serves the admin port while the server waits, until stop is called. The process is alive,
// so that nobody restarts it, and not ready, and it says why.
func (w *roomWait) answer(ctx context.Context) (stop func()) {
	answers := http.HandlerFunc(func(res http.ResponseWriter, req *http.Request) {
		if req.URL.Path == "/livez" {
			_, _ = io.WriteString(res, "[+]running ok\n") // an error says that the client left
			return
		}
		text := fmt.Sprintf("[-]started failed: %v; then this server starts again by itself", w.why.Load())
		http.Error(res, text, http.StatusServiceUnavailable)
	})
	e, secure := new(endpoints), &portTLS{log: w.log}
	if use, err := secure.prepareHTTP(w.c); err != nil {
		w.log.Warn("health probes get no answer until this server starts again", "error", err)
	} else if use(); w.c.AdminEnabled {
		e.open(ctx, adminPort(w.c, secure), refuseForeignHosts(answers, w.c.AdminAddress), w.log)
	}
	return func() {
		_ = e.close() // of listeners
		secure.close()
	}
}

// run waits until the disks of the data and of the log have room, or until stop ends. It returns
// false if nobody can tell, or if stop has ended. It reads the configuration each time it looks,
// because it may have changed since the start, and may name another disk now.
func (w *roomWait) run(stop context.Context) bool {
	w.data, w.dirs = dataFiles(w.c), dirsOf(w.c)
	last := ""
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
		waits, known := w.obstacle()
		if waits == "" || !known {
			return known
		}
		if waits != last || n%roomLines == 0 {
			w.log.Warn(waits)
		}
		last = waits
		w.why.Store(waits)
	}
}

// obstacle returns why the server cannot start now, or "". Unless known, nobody can tell.
func (w *roomWait) obstacle() (waits string, known bool) {
	if len(w.data) > 0 && !maps.Equal(w.data, dataFiles(w.c)) {
		return fmt.Sprintf("waiting for the data: %s lacks files that this server stopped with, or has others; "+
			"move the files of %s there or correct dataDir and dataLogDir; "+
			"to start with what is there now, restart this process",
			strings.Join(dirsOf(w.c), " and "), strings.Join(w.dirs, " and ")), true
	}
	for _, dir := range dirsOf(w.c) {
		room, known := w.space(dir)
		if !known {
			return "", false
		}
		// A small disk never has leastRoom, although a server runs on it.
		if least := min(leastRoom, room.Size/4); room.Free < least {
			waits = fmt.Sprintf("waiting for room: the disk of %s has less than %d MiB free; make room there", dir, least>>20)
		}
	}
	return waits, true
}

// dirsOf returns the data directories; none if all data is in memory.
func dirsOf(c config.Config) []string {
	if c.Memory {
		return nil
	}
	return slices.Compact([]string{c.Server.Dir, cmp.Or(c.Server.LogDir, c.Server.Dir)})
}

// dataFiles returns the sizes of the files with a server's data, by their names below the data
// directories; none if there is no data. The sizes tell a copy that is under way from a whole one.
func dataFiles(c config.Config) map[string]int64 {
	if c.Memory || existingData(c) == "" {
		return nil
	}
	sizes := make(map[string]int64)
	dirs := dirsOf(c)
	paths, _ := os.ReadDir(filepath.Join(dirs[len(dirs)-1], "wal")) // files that cannot be read are missing
	for _, e := range paths {
		if info, err := e.Info(); err == nil {
			sizes["wal/"+e.Name()] = info.Size()
		}
	}
	if info, err := os.Stat(filepath.Join(dirs[0], "checkpoint.db")); err == nil {
		sizes["checkpoint.db"] = info.Size()
	}
	return sizes
}

// spaceAt is vfs.SpaceOf. A directory that does not exist yet has the disk of its parent.
func spaceAt(dir string) (room vfs.Space, known bool) {
	for parent := filepath.Dir(dir); parent != dir; dir, parent = parent, filepath.Dir(parent) {
		if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	return vfs.SpaceOf(dir)
}

const (
	// leastRoom must be free on a large disk: a segment of the log, and as much for a checkpoint.
	leastRoom = 128 << 20
	// roomLines is after how many seconds the log says again that the server waits.
	roomLines = 60
)
