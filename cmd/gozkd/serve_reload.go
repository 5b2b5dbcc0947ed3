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

// reloader reloads the configuration while a server runs. Its methods are safe for concurrent use.
type reloader struct {
	server  *server.Server
	again   func() (*config.Invocation, error)
	file    string // the zoo.cfg of the start, or empty
	manager systemd
	log     hclog.Logger

	stopping atomic.Bool

	mu            sync.Mutex // guards the fields below, and serializes reloads
	serving       bool       // the service manager knows that the server is ready
	started, last config.Config
}

// serves reports to the service manager that the server is ready.
func (r *reloader) serves(address string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.serving = true
	r.manager.notify("READY=1\nSTATUS=serving clients at " + address)
}

// stops reports to the service manager that the server is stopping, before connections are closed.
// If a reload is running, stops waits for it.
func (r *reloader) stops(status string) {
	r.stopping.Store(true)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.serving = false
	r.manager.notify("STOPPING=1\nSTATUS=" + status)
}

// notReady returns why clients should not connect any more, or nil.
func (r *reloader) notReady() error {
	if r.stopping.Load() {
		return errors.New("the server is being stopped")
	}
	return nil
}

// reload reads the configuration again, from the same command line, file and environment. It
// applies the keys that can change at runtime and returns the keys that need a restart. An error
// means that nothing has changed. reload logs the outcome.
func (r *reloader) reload() (restart []string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.serving { // otherwise READY would be premature, or follow STOPPING
		r.manager.reloading()
		defer r.manager.notify("READY=1")
	}
	inv, err := r.again()
	if err == nil && r.file != "" && inv.File == "" { // the environment and the defaults would replace the file
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

// forAdmin is reload for the admin command, which reports only errors: keys that need a restart are
// an error.
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
