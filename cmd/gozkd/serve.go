package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/backup"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/cli"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/config"
	"github.com/gozkd/gozkd/internal/backoff"
	"github.com/gozkd/gozkd/internal/portfile"
	"github.com/gozkd/gozkd/internal/vfs"
	"github.com/gozkd/gozkd/server"
	"github.com/gozkd/gozkd/web"
)

// settleTime is how long a server serves before it drops the pages that only its start needed.
const settleTime = time.Second

type loader func() (*config.Invocation, config.Config, error)

// serve runs an ensemble, or a server until a signal ends it or its disk fails.
func serve(inv *config.Invocation, c config.Config, again loader, env cli.Env) (err error) {
	log := hclog.New(&hclog.LoggerOptions{
		Name: "gozkd", Level: hclog.LevelFromString(c.LogLevel), Output: env.Err, JSONFormat: inv.LogJSON,
	})
	stop, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	signal.Ignore(syscall.SIGPIPE) // a server must outlive the reader of its log
	answerQuit(stop, env.Err)
	if env.Getenv("GOGC") == "" {
		// Stopped by the signal that ends the program, which does not wait for tuneGC.
		go tuneGC(stop)
	}
	if env.Getenv("GOMEMLIMIT") == "" {
		limitMemory()
	}
	trail := openAudit(c, env.Err, log)
	defer func() { err = errors.Join(err, trail.close()) }()
	if inv.Ensemble > 0 {
		return serveEnsemble(stop, inv, c, trail, log)
	}
	manager := systemd{log.Named("systemd")}
	w := roomWait{inv: inv, c: c, again: again, space: spaceAt, reopen: trail.reopen, log: log}
	return w.serve(stop, manager, func(hangup <-chan os.Signal) error {
		log.SetLevel(hclog.LevelFromString(w.c.LogLevel))
		for {
			err := serveOne(stop, cancel, hangup, w.inv, w.c, again, trail, manager, env, log)
			if !errors.Is(err, backup.ErrAnew) {
				return err
			}
		}
	})
}

// serveOne runs a server until stop ends. After kill, the next signal ends the process at once.
func serveOne(
	stop context.Context, kill func(), hangup <-chan os.Signal, inv *config.Invocation, c config.Config, again loader,
	trail *auditTrail, manager systemd, env cli.Env, log hclog.Logger,
) (err error) {
	if err := errors.Join(refuseZooKeeperData(c), backup.CheckServable(c.Server.Dir)); err != nil {
		return err
	}
	secure := &portTLS{log: log}
	defer secure.close()
	cfg := serverConfig(c, log)
	cfg.Audit = trail.sink()
	usePorts, err := secure.prepare(c, &cfg)
	if err != nil {
		return err
	}
	usePorts()
	logins := &mechanisms{log: log.Named("sasl")}
	if cfg.Auth.SASL, err = logins.apply(&c); err != nil {
		return err
	}
	archiver, err := openArchiver(c, &cfg, env.Getenv, log)
	if err != nil {
		return err
	}
	follower, err := openFollower(stop, c, &cfg, env.Getenv, log)
	if err != nil {
		return err
	}
	s, err := server.New(cfg)
	if err != nil {
		return err
	}
	r := &reloader{
		server: s, tls: secure, logins: logins, again: again,
		file: inv.File, started: c, last: c, manager: manager, log: log, hangup: hangup, reopen: trail.reopen,
	}
	// Before the start, so that clients can ask for the progress.
	ends := openEndpoints(stop, inv, c, s, r, archiver, log)
	defer func() { err = errors.Join(err, ends.close()) }()
	defer r.manager.watch(func() { s.Status() })()
	r.manager.notify("STATUS=looking for the other servers, or reading the data")
	if err := follower.whileStarting(stop, r); err != nil {
		if stop.Err() != nil {
			return nil // stopped before it was ready
		}
		return err
	}
	if err := founded(c); err != nil {
		log.Warn("the file initialize stays", "error", err)
	}
	where := portfile.Ports{Client: addressOf(s.Addr()), Secure: addressOf(s.SecureAddr()), Admin: ends.admin, Metrics: ends.metrics}
	if err := where.Write(inv.PortFile); err != nil {
		return errors.Join(err, s.Close())
	}
	defer where.Remove(inv.PortFile)
	r.serves(cmp.Or(where.Client, where.Secure))
	members := newScaling(c, s, log)
	members.join(stop)
	archiver.start(s)
	defer archiver.stop()
	for {
		select {
		case <-hangup:
			r.hungUp()
		case <-stop.Done():
			kill()
			log.Info("stopping")
			r.ends("STOPPING=1\nSTATUS=stopping")
			members.leave()
			archiver.stop()
			ends.web.Close()
			return s.Close()
		case err := <-s.Err():
			r.fails(err)
			ends.web.Close()
			return errors.Join(err, s.Close())
		}
	}
}

// addressOf returns where clients connect, or "" if that port is not open.
func addressOf(port net.Addr) string {
	if port == nil {
		return ""
	}
	return port.String()
}

// serverConfig returns the server's configuration without SASL mechanisms, TLS and the audit log.
func serverConfig(c config.Config, log hclog.Logger) server.Config {
	cfg := c.ForServer()
	cfg.JoinOnly, cfg.Logger = !mayFound(c), log
	return cfg
}

// systemd sends the state of the server to the service manager, if any: see sd_notify(3).
type systemd struct{ log hclog.Logger }

// notify sends assignments, one per line.
func (m systemd) notify(state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		m.log.Warn("the service manager was not told", "state", state, "error", err)
	}
}

// watch reports twice per interval of the service manager's watchdog, if any, that the server is
// alive, until stop is called. Before, it calls look, which blocks if the server is stuck.
func (m systemd) watch(look func()) (stop func()) {
	every, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		m.log.Warn("the service manager's watchdog is not served", "error", err)
	}
	if err != nil || every <= 0 {
		return func() {}
	}
	alive, dead := context.WithCancel(context.Background())
	var watching sync.WaitGroup
	watching.Go(func() { // stopped and awaited by stop
		for again := true; again; again = backoff.Sleep(alive, max(every/2, time.Millisecond)) {
			look()
			m.notify(daemon.SdNotifyWatchdog)
		}
	})
	return func() { dead(); watching.Wait() }
}

// reloader reloads the configuration while a server runs. Its methods are safe for concurrent use.
type reloader struct {
	server  *server.Server
	tls     *portTLS
	logins  *mechanisms
	again   loader
	file    string // the zoo.cfg of the start, or empty
	manager systemd
	log     hclog.Logger
	hangup  <-chan os.Signal // SIGHUP
	reopen  func() error     // the audit log

	stopping atomic.Bool

	mu            sync.Mutex   // guards the fields below, and serializes reloads
	web           *web.Handler // nil: REST and the explorer are not served, or not yet
	serving       bool         // the service manager was told that the server is ready
	started, last config.Config
}

// patience is how often in a row a starting server must have no leader to count as ready.
const patience = 5

// whileStarting returns the result of start. A server that has read its data and waits for the
// others counts as ready for the service manager: an operator who starts one server after the other
// would otherwise wait for a majority. It is looked at once per interval. The start may last as
// long as the quorum is away, or a standby runs: SIGHUP has its effect meanwhile.
func (r *reloader) whileStarting(ctx context.Context, interval time.Duration, start func(context.Context) error) error {
	started := make(chan error, 1)
	// Ends when the start succeeds or fails, or ctx ends; awaited below.
	go func() { started <- start(ctx) }()
	look := time.NewTicker(interval)
	defer look.Stop()
	status := "waiting for the other servers: no leader yet"
	if r.started.Server.Standby {
		status = "standby: following the archive, serving reads"
	}
	for waited := 0; ; {
		select {
		case err := <-started:
			return err
		case <-r.hangup:
			r.hungUp()
		case <-look.C:
			// A server that is read-only serves, although it has not started.
			if err := r.server.NotServing(); err != nil && !errors.Is(err, server.ErrNoLeader) {
				waited = 0
			} else if waited++; waited == patience {
				r.ready(status)
			}
		}
	}
}

// hungUp opens the audit log again, which another program may have renamed, and reloads.
func (r *reloader) hungUp() {
	if err := r.reopen(); err != nil {
		r.log.Warn("the audit log was not closed well before it is opened again", "error", err)
	}
	_, _ = r.reload() // reload logs the outcome
}

// servesWeb registers the handler whose logins a reload ends.
func (r *reloader) servesWeb(h *web.Handler) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.web = h
}

// serves reports to the service manager that the server serves clients.
func (r *reloader) serves(address string) {
	r.ready("serving clients at " + address)
	time.AfterFunc(settleTime, dropProgramPages) // takes a moment; nobody awaits it
}

func (r *reloader) ready(status string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.serving = true
	r.manager.notify("READY=1\nSTATUS=" + status)
}

// fails reports that the server has failed. A server whose disk is full starts again in this
// process, which the service manager would kill some time after STOPPING=1.
func (r *reloader) fails(err error) {
	if vfs.Full(err) {
		r.ends("STATUS=stopping, because a disk is full")
	} else {
		r.ends("STOPPING=1\nSTATUS=failed")
	}
}

// ends reports the end, before connections are closed. It waits for a reload.
func (r *reloader) ends(state string) {
	r.stopping.Store(true)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.serving = false
	r.manager.notify(state)
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
		// Type=notify-reload requires the time.
		r.manager.notify(daemon.SdNotifyReloading + "\n" + daemon.SdNotifyMonotonicUsec())
		defer r.manager.notify("READY=1")
	}
	var fields []string // of server.Config that need a restart
	inv, c, err := readAgain(r.again, r.file)
	if err == nil {
		if fields, err = r.apply(c); err != nil {
			err = inv.Locate(err)
		}
	}
	if err != nil {
		r.log.Error("configuration not reloaded, nothing has changed", "error", strings.ReplaceAll(err.Error(), "\n", "; "))
		return nil, err
	}
	for _, w := range inv.Warnings {
		r.log.Warn("configuration", "warning", w)
	}
	changed, _ := r.last.Changes(c)
	_, restart = r.started.Changes(c)
	const secretFile = "gozkd.peer.secretFile"
	if slices.Contains(fields, "PeerSecret") && !slices.Contains(restart, secretFile) { // the same name, another content
		restart = append(restart, secretFile)
	}
	r.last = c
	r.web.EndLogins() // a password may have changed
	r.log.SetLevel(hclog.LevelFromString(c.LogLevel))
	r.log.Info("configuration reloaded", "changed", list(changed))
	if len(restart) > 0 {
		r.log.Warn("some keys have other values now, which need a restart", "keys", list(restart))
	}
	return restart, nil
}

// readAgain reads the configuration again; file is the zoo.cfg of the start, or empty. A file that
// is gone is an error: the environment and the defaults would replace it.
func readAgain(again loader, file string) (*config.Invocation, config.Config, error) {
	inv, c, err := again()
	if err == nil && file != "" && inv.File == "" {
		err = fmt.Errorf("%s is gone", file)
	}
	return inv, c, err
}

// apply applies a configuration, or nothing of it. fields of server.Config need a restart.
func (r *reloader) apply(c config.Config) (fields []string, err error) {
	cfg := serverConfig(c, r.log)
	if cfg.Auth.SASL, err = r.logins.apply(&c); err != nil {
		return nil, err
	}
	usePorts, err := r.tls.prepare(c, &cfg)
	if err != nil {
		return nil, err
	}
	if fields, err = r.server.Reload(cfg); err != nil {
		return nil, err
	}
	usePorts()
	return fields, nil
}

// forAdmin is reload for the admin command: keys that need a restart are an error.
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
