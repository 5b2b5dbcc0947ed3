package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/compat/install"
	"github.com/gozkd/gozkd/test/compat/server"
)

func installPatroni(ctx context.Context, root string) (string, func(context.Context, *world) string) {
	sources := filepath.Join(root, "test", "compat", "programs", "patroni")
	requirements := filepath.Join(sources, "requirements.txt")
	p := &patroni{
		postgreSQL: install.PostgreSQL(ctx),
		python:     install.Python(ctx, root, "program-patroni", requirements),
		script:     filepath.Join(sources, "client.py"),
	}
	_, version, _ := strings.Cut(strings.Fields(string(must.Get(os.ReadFile(requirements))))[0], "==")
	return version, p.check
}

// patroni is a cluster of three members, each with a PostgreSQL. Replication is synchronous.
type patroni struct {
	postgreSQL, python, script string
	*world
	members []*patroniMember
}

// patroniMember is a process of Patroni and the PostgreSQL that this process starts. PostgreSQL
// outlives a killed Patroni.
type patroniMember struct {
	*server.Process
	name           string
	rest, database int // ports
}

// check kills the ensemble's leader and then the primary while rows are inserted, and restarts the
// primary.
func (p *patroni) check(ctx context.Context, w *world) string {
	const members, some = 3, 200
	p.world, p.members = w, nil
	defer must.Finally(p.stopAll)
	ports := must.Get(server.FreePorts(2 * members))
	for i := range members {
		m := &patroniMember{name: fmt.Sprintf("member-%d", i), rest: ports[i], database: ports[members+i]}
		p.members = append(p.members, m)
		p.startMember(m)
	}
	p.awaitCluster(ctx, members)
	writer := w.startWorker("writer", exec.Command(p.python, p.script, "write", p.ports()))
	w.aroundLeader(ctx, func() { writer.more(ctx, w, some) })

	old := p.awaitCluster(ctx, members)
	must.Do(old.Kill())
	must.Do(p.endPostgreSQL(old, syscall.SIGKILL))
	writer.more(ctx, w, some)
	if leader := p.awaitCluster(ctx, members-1); leader == old {
		must.Failf("%s, which was killed, is still the primary", leader.name)
	}
	p.startMember(old)
	p.awaitCluster(ctx, members)
	writer.more(ctx, w, some)
	acked := values(writer.end(ctx), "acked")
	w.await(ctx, "no lag", func() error {
		for _, s := range p.shown(ctx) {
			if s.Role != "leader" && s.Lag != 0.0 {
				return fmt.Errorf("%+v is behind", s)
			}
		}
		return nil
	})
	w.awaitCard(ctx, "Patroni", "cluster: leader is "+p.awaitCluster(ctx, members).name, fmt.Sprintf("cluster: %d members", members), "cluster: lag 0 B")
	for _, m := range p.members {
		w.await(ctx, "all rows on "+m.name, func() error {
			return kept(acked, values(w.ask(ctx, "read", exec.Command(p.python, p.script, "read", strconv.Itoa(m.database))), "got"))
		})
	}
	return fmt.Sprintf("%d committed rows, none lost on any member", len(acked))
}

// ports returns the ports of all databases.
func (p *patroni) ports() string {
	var list []string
	for _, m := range p.members {
		list = append(list, strconv.Itoa(m.database))
	}
	return strings.Join(list, ",")
}

func (p *patroni) data(m *patroniMember) string { return filepath.Join(p.dir, m.name) }

func (p *patroni) startMember(m *patroniMember) {
	config := p.configure("patroni/member.yml", m.name+".yml", map[string]any{
		"Name": m.name, "REST": m.rest, "Database": m.database, "Data": p.data(m), "Sockets": p.dir,
		"Programs": p.postgreSQL, "ZooKeeper": strings.ReplaceAll(p.connect(","), ",", `","`),
	})
	args := []string{p.python, "-m", "patroni", config}
	if os.Getuid() == 0 {
		// PostgreSQL refuses to run as root. A user namespace with another uid suffices.
		args = append([]string{"unshare", "--user", "--map-user=65534", "--map-group=65534"}, args...)
	}
	m.Process = p.start(m.name, exec.Command(args[0], args[1:]...))
}

// awaitCluster waits until Patroni shows n members, all in step: a primary, a synchronous standby,
// and others that stream, and returns the primary.
func (p *patroni) awaitCluster(ctx context.Context, n int) (primary *patroniMember) {
	p.await(ctx, fmt.Sprintf("%d members in step", n), func() error {
		shown := p.shown(ctx)
		primary = nil
		standbys := 0
		for _, s := range shown {
			switch {
			case s.Role == "leader" && s.State == "running":
				primary = p.named(s.Name)
			case s.State != "streaming":
				return fmt.Errorf("the cluster is %+v", shown)
			case s.Role == "sync_standby":
				standbys++
			}
		}
		if len(shown) != n || primary == nil || standbys == 0 {
			return fmt.Errorf("the cluster is %+v", shown)
		}
		return nil
	})
	return primary
}

// shownMember is a member as Patroni's REST API shows it. Lag is a number of bytes, or says
// that it is unknown.
type shownMember struct {
	Name, Role, State string
	Lag               any
}

// shown returns the cluster as the first member that answers shows the members.
func (p *patroni) shown(ctx context.Context) []shownMember {
	var errs []error
	for _, m := range p.members {
		var cluster struct{ Members []shownMember }
		text, err := httpDo(ctx, http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/cluster", m.rest), "")
		if err == nil {
			err = json.Unmarshal(text, &cluster)
		}
		if err == nil && len(cluster.Members) > 0 {
			return cluster.Members
		}
		errs = append(errs, err)
	}
	must.Failf("no member of Patroni shows the cluster: %w", errors.Join(errs...))
	return nil
}

func (p *patroni) named(name string) *patroniMember {
	for _, m := range p.members {
		if m.name == name {
			return m
		}
	}
	must.Failf("Patroni shows an unknown member %q", name)
	return nil
}

// stopAll ends all members and their PostgreSQL.
func (p *patroni) stopAll() error {
	var errs []error
	for _, m := range p.members {
		if m.Process != nil {
			errs = append(errs, m.Kill(), p.endPostgreSQL(m, syscall.SIGQUIT))
		}
	}
	return errors.Join(errs...)
}

// endPostgreSQL sends a signal to the PostgreSQL of a member that has ended, and waits for the end
// of PostgreSQL.
func (p *patroni) endPostgreSQL(m *patroniMember, signal syscall.Signal) error {
	file, err := os.ReadFile(filepath.Join(p.data(m), "postmaster.pid"))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	first, _, _ := strings.Cut(string(file), "\n")
	pid, err := strconv.Atoi(first)
	if err != nil {
		return err
	}
	postmaster, err := os.FindProcess(pid)
	if err != nil {
		return err
	}
	if err := postmaster.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return must.Try(func() {
		p.await(context.Background(), "the end of PostgreSQL", func() error {
			if err := postmaster.Signal(syscall.Signal(0)); !errors.Is(err, os.ErrProcessDone) {
				return fmt.Errorf("process %d of %s is there", pid, m.name)
			}
			return nil
		})
	})
}
