package main

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/config"
	"github.com/gozkd/gozkd/server"
)

// reloader reads the configuration again while a server serves. Its methods may be called from any goroutine.
type reloader struct {
	server  *server.Server
	again   func() (*config.Invocation, error)
	file    string // the zoo.cfg that the server was started with; empty: none
	manager systemd
	log     hclog.Logger

	stopping atomic.Bool

	mu            sync.Mutex // guards the rest, and keeps reloads apart
	serving       bool       // the service manager was told so
	started, last config.Config
}

// serves tells that clients are served.
func (r *reloader) serves(address string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.serving = true
	r.manager.tell("READY=1\nSTATUS=serving clients at " + address)
}

// stops tells that the server is about to stop, before any connection is closed. It waits for a reload under way, which tells of itself.
func (r *reloader) stops(status string) {
	r.stopping.Store(true)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.serving = false
	r.manager.tell("STOPPING=1\nSTATUS=" + status)
}

// notReady says why no more clients shall come.
func (r *reloader) notReady() error {
	if r.stopping.Load() {
		return errors.New("the server is being stopped")
	}
	return nil
}

// reload reads the configuration as at the start: the same command line, file and environment. What can change does, and the keys that
// need a restart are returned. With an error nothing has changed. Both are logged.
func (r *reloader) reload() (restart []string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.serving { // else READY would be heard by who waits for the start, or after the stop has begun
		r.manager.reloading()
		defer r.manager.tell("READY=1")
	}
	inv, err := r.again()
	if err == nil && r.file != "" && inv.File == "" { // what would count instead is what the environment or nobody says
		err = fmt.Errorf("%s is gone", r.file)
	}
	if err == nil {
		_, err = r.server.Reload(serverConfig(inv.Config, r.log))
	}
	if err != nil {
		r.log.Error("configuration not reloaded, nothing has changed", "error", strings.ReplaceAll(err.Error(), "\n", "; "))
		return nil, err
	}
	for _, w := range inv.Warnings {
		r.log.Warn("configuration", "warning", w)
	}
	changed, _ := r.last.Changes(inv.Config)
	_, restart = r.started.Changes(inv.Config)
	r.last = inv.Config
	r.log.SetLevel(hclog.LevelFromString(inv.Config.LogLevel))
	r.log.Info("configuration reloaded", "changed", list(changed))
	if len(restart) > 0 {
		r.log.Warn("some keys have other values now, which need a restart", "keys", list(restart))
	}
	return restart, nil
}

// forAdmin is reload for who sees only the error: that a restart is needed is one.
func (r *reloader) forAdmin() error {
	restart, err := r.reload()
	if err == nil && len(restart) > 0 {
		err = errors.New("reloaded, but these keys need a restart: " + list(restart))
	}
	return err
}

func list(keys []string) string {
	if len(keys) == 0 {
		return "none"
	}
	return strings.Join(keys, ", ")
}
