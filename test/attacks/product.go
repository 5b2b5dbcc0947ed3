package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/compat/server"
)

// Names of products.
const (
	gozkd     = "gozkd"
	zooKeeper = "zookeeper"
)

// jvmFlags are ZooKeeper's own defaults: the heap of zkServer.sh.
var jvmFlags = []string{"-Xmx1000m"}

// product is a kind of server that can be started.
type product struct {
	name string
	kind server.Kind
	addr string // a running server, which is not started
}

// products returns the servers to be attacked, built or installed.
func (s *settings) products(ctx context.Context, dir string) (list []*product, err error) {
	if s.addr != "" {
		return []*product{{name: s.addr, addr: s.addr}}, nil
	}
	var flags []string
	if s.race {
		flags = []string{"-race"}
	}
	err = must.Try(func() {
		for _, name := range s.servers {
			kind, known := map[string]string{gozkd: server.Gozkd, zooKeeper: server.ZooKeeper39}[name]
			if !known {
				must.Failf("no server %q: know %s and %s", name, gozkd, zooKeeper)
			}
			list = append(list, &product{name: name, kind: server.KindNamed(ctx, kind, s.gozkd, dir, flags...)})
		}
	})
	return list, err
}

// servers are the processes under attack, one or three. The data outlives a restart.
type servers struct {
	product  *product
	options  server.Options   // of a standalone server
	alone    *server.Process  // nil: an ensemble
	ensemble *server.Ensemble // nil: a standalone server
	target   target
}

// keys returns the zoo.cfg: defaults, except that the four-letter words and the admin server are
// available to the attacker.
func keys(a *attack, tick string, adminPort int) map[string]string {
	k := map[string]string{
		"tickTime":               tick,
		"4lw.commands.whitelist": "*",
		"admin.enableServer":     strconv.FormatBool(a.admin),
	}
	if a.admin {
		k["admin.serverAddress"], k["admin.serverPort"] = "127.0.0.1", strconv.Itoa(adminPort)
	}
	maps.Copy(k, a.keys)
	return k
}

// start starts the servers for an attack, with data in dir.
func (p *product) start(ctx context.Context, s *settings, a *attack, dir string) (*servers, error) {
	v := &servers{product: p}
	v.target.Product = p.name
	if p.addr != "" {
		v.target = target{Addrs: []string{p.addr}}
		return v, nil
	}
	free, err := server.FreePorts(1)
	if err != nil {
		return nil, err
	}
	adminPort := free[0]
	if a.admin {
		v.target.Admin = fmt.Sprintf("127.0.0.1:%d", adminPort)
	}
	k := keys(a, s.tick, adminPort)
	if a.ensemble {
		return v, v.startEnsemble(ctx, k)
	}
	v.options = server.Options{DataDir: filepath.Join(dir, "data"), Keys: k, JVMFlags: jvmFlags}
	if a.files > 0 {
		v.options.Wrapper = []string{"prlimit", fmt.Sprintf("--nofile=%d:%d", a.files, a.files)}
	}
	return v, v.startAlone(ctx)
}

func (v *servers) startAlone(ctx context.Context) (err error) {
	if v.alone, err = v.product.kind.Start(ctx, v.options); err == nil {
		v.target.Addrs = []string{v.alone.Addr()}
	}
	return err
}

func (v *servers) startEnsemble(ctx context.Context, keys map[string]string) (err error) {
	v.ensemble, err = v.product.kind.StartEnsemble(ctx, server.EnsembleOptions{Members: 3, Keys: keys, JVMFlags: jvmFlags})
	if err != nil {
		return err
	}
	v.target.Addrs = v.ensemble.Addrs()
	v.target.Peers, v.target.Elections, err = peerPorts(v.ensemble.Members[0].ConfigFile())
	return err
}

// peerPorts reads the addresses of the server lines of a zoo.cfg, in the order of the members.
func peerPorts(config string) (peers, elections []string, err error) {
	f, err := os.Open(config)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f) // the keys are sorted
	for lines.Scan() {
		if !strings.HasPrefix(lines.Text(), "server.") {
			continue
		}
		_, value, _ := strings.Cut(lines.Text(), "=")
		parts := strings.Split(value, ":")
		if len(parts) < 3 {
			return nil, nil, fmt.Errorf("%s: unknown form: %s", config, lines.Text())
		}
		peers = append(peers, net.JoinHostPort(parts[0], parts[1]))
		elections = append(elections, net.JoinHostPort(parts[0], parts[2]))
	}
	return peers, elections, lines.Err()
}

// processes returns the processes under attack; none if they were not started here.
func (v *servers) processes() (list []*server.Process) {
	if v.alone != nil {
		list = append(list, v.alone)
	}
	if v.ensemble != nil {
		for _, m := range v.ensemble.Members {
			list = append(list, m.Process)
		}
	}
	return list
}

// died returns which processes have ended, with the last lines of their output.
func (v *servers) died() (list []string) {
	for i, p := range v.processes() {
		if !p.Running() {
			list = append(list, fmt.Sprintf("server %d: %s", i+1, lastWords(p.Log())))
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
	for _, p := range v.processes() {
		_ = p.Signal(syscall.SIGTERM) // fails only without the right to
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for _, p := range v.processes() {
		select {
		case <-p.Done():
		case <-timer.C:
			v.kill()
			return limit
		}
	}
	return time.Since(began)
}

// kill ends all processes at once and waits for them.
func (v *servers) kill() {
	for _, p := range v.processes() {
		_ = p.Signal(os.Kill) // fails only without the right to
		<-p.Done()
	}
}

// restart starts the servers again on their data, after terminate, and returns when they serve.
func (v *servers) restart(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, restartLimit)
	defer cancel()
	if v.ensemble != nil {
		for _, m := range v.ensemble.Members {
			if err := m.Start(); err != nil {
				return err
			}
		}
		return v.ensemble.AwaitServing(ctx)
	}
	old := v.alone
	v.alone = nil
	return errors.Join(old.Kill(), v.startAlone(ctx)) // Kill removes the files of the process, not its data
}

// stop ends everything and removes the files.
func (v *servers) stop() error {
	v.kill()
	if v.ensemble != nil {
		return v.ensemble.Stop()
	}
	if v.alone != nil {
		return v.alone.Kill()
	}
	return nil
}

// logBytes returns the size of the servers' output, and how many reports of the race detector it
// contains.
func (v *servers) logBytes() (n, races int) {
	for _, p := range v.processes() {
		log := p.Log()
		n += len(log)
		races += strings.Count(log, "WARNING: DATA RACE")
	}
	return n, races
}
