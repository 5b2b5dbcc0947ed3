package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/compat/server"
)

// jvmFlags are ZooKeeper's own defaults: the heap of zkServer.sh.
var jvmFlags = []string{"-Xmx1000m"}

// servers are the processes under attack, one or three. The data outlives a restart.
type servers struct {
	ensemble *server.Ensemble
	target   target
}

// startServers starts the servers for an attack. Their zoo.cfg has defaults, except that the
// four-letter words and the admin server are available to the attacker.
func startServers(ctx context.Context, k server.Kind, a *attack) *servers {
	v := new(servers)
	opts := server.EnsembleOptions{Members: 1, JVMFlags: jvmFlags, Keys: map[string]string{
		"tickTime":               "2000",
		"4lw.commands.whitelist": "*",
		"admin.enableServer":     strconv.FormatBool(a.admin),
	}}
	if a.ensemble {
		opts.Members = 3
	}
	if a.admin {
		port := must.Get(server.FreePorts(1))[0]
		opts.Keys["admin.serverAddress"], opts.Keys["admin.serverPort"] = "127.0.0.1", strconv.Itoa(port)
		v.target.Admin = fmt.Sprintf("127.0.0.1:%d", port)
	}
	if a.files > 0 {
		opts.Wrapper = []string{"prlimit", fmt.Sprintf("--nofile=%d:%d", a.files, a.files)}
	}
	maps.Copy(opts.Keys, a.keys)
	v.ensemble = must.Get(k.StartEnsemble(ctx, opts))
	v.target.Addrs = v.ensemble.Addrs()
	if a.ensemble {
		for _, m := range v.ensemble.Members {
			v.target.Peers = append(v.target.Peers, m.PeerAddr())
			v.target.Elections = append(v.target.Elections, m.ElectionAddr())
		}
	}
	return v
}

// died returns which processes have ended, with the last lines of their output.
func (v *servers) died() (list []string) {
	for _, m := range v.ensemble.Members {
		if !m.Running() {
			list = append(list, fmt.Sprintf("server %d: %s", m.ID, lastWords(m.Log())))
		}
	}
	return list
}

// lastWords returns the reason of a process's end from its output.
func lastWords(log string) string {
	last := ""
	for line := range strings.Lines(log) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "panic:") || strings.HasPrefix(line, "fatal error:") {
			return line
		}
		if strings.Contains(line, "ERROR") || last == "" && line != "" {
			last = line
		}
	}
	const most = 300
	return last[:min(len(last), most)]
}

// terminate sends SIGTERM to all processes and returns how long the last took to end. A process
// that has not ended after limit is killed.
func (v *servers) terminate(limit time.Duration) (took time.Duration) {
	began := time.Now()
	for _, m := range v.ensemble.Members {
		_ = m.Signal(syscall.SIGTERM) // fails only without the right to
	}
	late := time.After(limit)
	for _, m := range v.ensemble.Members {
		select {
		case <-m.Done():
		case <-late:
			v.kill()
			return limit
		}
	}
	return time.Since(began)
}

// kill ends all processes at once and waits for them.
func (v *servers) kill() {
	for _, m := range v.ensemble.Members {
		_ = m.Signal(os.Kill) // fails only without the right to
		<-m.Done()
	}
}

// restart starts the servers again on their data, after terminate, and returns when they serve.
func (v *servers) restart(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, restartLimit)
	defer cancel()
	for _, m := range v.ensemble.Members {
		m.Start()
	}
	v.ensemble.AwaitServing(ctx)
}

// stop ends everything and removes the files.
func (v *servers) stop() error {
	v.kill()
	return v.ensemble.Stop()
}

// logBytes returns the size of the servers' output, and how many races are reported there.
func (v *servers) logBytes() (n, races int) {
	for _, m := range v.ensemble.Members {
		log := m.Log()
		n += len(log)
		races += strings.Count(log, "WARNING: DATA RACE")
	}
	return n, races
}
