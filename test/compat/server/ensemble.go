package server

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/gozkd/gozkd/internal/testkit/must"
)

// EnsembleOptions configure an ensemble.
type EnsembleOptions struct {
	// Members is their number; all vote. Their ids are 1 and up. A single one is a standalone
	// server unless the keys say otherwise.
	Members int
	// Keys are lines of zoo.cfg that the members share; nil means Defaults(). initLimit=10 and
	// syncLimit=5 are added if missing.
	Keys map[string]string
	// JVMFlags are as in Options, for each member.
	JVMFlags []string
	// Wrapper is as in Options, for each member.
	Wrapper []string
	// Audit: each member writes ZooKeeper's lines to its AuditLog, if the keys have audit.enable.
	Audit bool
	// Addrs are the client addresses of the members, ports of 127.0.0.1; nil: free ports.
	Addrs []string
	// InTurn: each member starts when those before it serve, such as the first with all data.
	InTurn bool
	// Prepare, if any, fills the data directory of each member before the first start.
	Prepare func(data string) error
	// Starting, if any, is called with the client addresses of all members just before the first of
	// them is started, once for each try.
	Starting func(addrs []string)
}

// Ensemble is a set of server processes with ports of 127.0.0.1 and data directories that survive
// restarts. The caller owns it and ends it with Stop. Not safe for concurrent use.
type Ensemble struct {
	// Members are in the order of their ids.
	Members []*Member

	name string
	dir  string
}

// Member is a server of an ensemble. Its Process is the latest, which may have ended.
type Member struct {
	*Process
	ID int

	addr     string
	peer     string
	election string
	dir      string
	wrapper  []string
	command  []string
}

// StartEnsemble starts an ensemble, and returns when a leader and all members serve. ctx bounds the
// start only.
func (k *Kind) StartEnsemble(ctx context.Context, opts EnsembleOptions) (*Ensemble, error) {
	for attempt := 1; ; attempt++ {
		e := &Ensemble{name: k.product()}
		err := must.Try(func() { e.start(ctx, k, opts) })
		if err == nil {
			return e, nil
		}
		err = errors.Join(err, e.Stop())
		if attempt == startAttempts || !strings.Contains(strings.ToLower(err.Error()), "address already in use") {
			return nil, err
		}
	}
}

// Name returns the product and version, such as "ZooKeeper 3.9.5".
func (e *Ensemble) Name() string { return e.name }

// Addrs returns the client addresses of all members, stopped members included.
func (e *Ensemble) Addrs() []string {
	addrs := make([]string, len(e.Members))
	for i, m := range e.Members {
		addrs[i] = m.addr
	}
	return addrs
}

// Pids returns the process ids of the running members.
func (e *Ensemble) Pids() []int {
	var pids []int
	for _, m := range e.running() {
		pids = append(pids, m.Pid())
	}
	return pids
}

// Leader returns the member whose srvr reports that it leads. No leader or two leaders, as during a
// leader change, are an error.
func (e *Ensemble) Leader(ctx context.Context) (*Member, error) {
	var leader *Member
	for _, m := range e.running() {
		// A member that does not answer is not known to lead.
		if answer, err := Srvr(ctx, m.addr); err != nil || answer["Mode"] != "leader" {
			continue
		}
		if leader != nil {
			return nil, fmt.Errorf("server: members %d and %d both say that they lead", leader.ID, m.ID)
		}
		leader = m
	}
	if leader == nil {
		return nil, errors.New("server: no member says that it leads")
	}
	return leader, nil
}

// LeaderFirst returns the leader, and then the other members.
func (e *Ensemble) LeaderFirst(ctx context.Context) ([]*Member, error) {
	leader, err := e.Leader(ctx)
	others := slices.DeleteFunc(slices.Clone(e.Members), func(m *Member) bool { return m == leader })
	return append([]*Member{leader}, others...), err
}

// AwaitServing waits until a running member leads and all other running members follow.
func (e *Ensemble) AwaitServing(ctx context.Context) {
	serve := func() { must.Await(ctx, answerTimeout, "all members serve", func() error { return e.serving(ctx) }) }
	if err := must.Try(serve); err != nil {
		must.Failf("%w\n%s", err, e.Log())
	}
}

// Log returns the members' output so far, in their order.
func (e *Ensemble) Log() string {
	var b strings.Builder
	for _, m := range e.Members {
		if m.Process != nil {
			fmt.Fprintf(&b, "--- member %d\n%s", m.ID, m.Log())
		}
	}
	return b.String()
}

// Stop ends all members and removes their files. nil has none.
func (e *Ensemble) Stop() error {
	if e == nil {
		return nil
	}
	var err error
	for _, m := range e.Members {
		if m.Process != nil {
			err = errors.Join(err, m.Stop())
		}
	}
	return errors.Join(err, os.RemoveAll(e.dir))
}

// Start restarts a member on its data. It returns at once: the member may need the others to serve.
func (m *Member) Start() {
	if m.Running() {
		must.Failf("server: member %d runs already", m.ID)
	}
	m.Process = Start(fmt.Sprintf("member %d", m.ID), wrapped(m.wrapper, m.command), filepath.Join(m.dir, "server.log"))
	m.Process.addr = m.addr
}

// Become makes binary, another version of gozkd, the program of the next Start.
func (m *Member) Become(binary string) { m.command[0] = binary }

// ConfigFile returns the path of the member's zoo.cfg, if it is a gozkd.
func (m *Member) ConfigFile() string { return m.command[len(m.command)-1] }

// PeerAddr returns the host:port for other members, on which the leader of a ZooKeeper listens.
func (m *Member) PeerAddr() string { return m.peer }

// ElectionAddr returns the host:port for elections.
func (m *Member) ElectionAddr() string { return m.election }

// DataDir returns the member's data directory.
func (m *Member) DataDir() string { return filepath.Join(m.dir, "data") }

// AuditLog returns the file of the member's audit log, see EnsembleOptions.Audit.
func (m *Member) AuditLog() string { return filepath.Join(m.dir, "audit.log") }

func (e *Ensemble) running() []*Member {
	var list []*Member
	for _, m := range e.Members {
		if m.Running() {
			list = append(list, m)
		}
	}
	return list
}

// serving returns nil if a running member leads and the other running members follow, otherwise the
// reason. It learns the servers' name from their answer.
func (e *Ensemble) serving(ctx context.Context) error {
	leaders := 0
	for _, m := range e.running() {
		answer, err := Srvr(ctx, m.addr)
		if err != nil {
			return err
		}
		switch mode := answer["Mode"]; mode {
		case "leader", "standalone":
			leaders++
		case "follower":
		default:
			return fmt.Errorf("server: member %d neither leads nor follows: mode %q", m.ID, mode)
		}
		if !strings.Contains(e.name, " ") {
			e.name += " " + versionOf(answer)
		}
	}
	if leaders != 1 {
		return fmt.Errorf("server: %d members lead", leaders)
	}
	return nil
}

func (e *Ensemble) start(ctx context.Context, k *Kind, opts EnsembleOptions) {
	e.layOut(ctx, k, opts)
	if opts.Starting != nil {
		opts.Starting(e.Addrs())
	}
	for _, m := range e.Members {
		m.Start()
		if opts.InTurn {
			e.AwaitServing(ctx)
		}
	}
	e.AwaitServing(ctx)
	if n := len(e.running()); n < opts.Members {
		must.Failf("server: %d of %d members ended\n%s", opts.Members-n, opts.Members, e.Log())
	}
}

// layOut creates the members' directories and configurations.
func (e *Ensemble) layOut(ctx context.Context, k *Kind, opts EnsembleOptions) {
	e.dir = must.Get(os.MkdirTemp("", "gozkd-ensemble-"))
	const portsEach = 3 // for other members, for elections, for clients
	ports := must.Get(FreePorts(portsEach * opts.Members))
	keys := map[string]string{"initLimit": "10", "syncLimit": "5"}
	if opts.Keys == nil {
		opts.Keys = Defaults()
	}
	maps.Copy(keys, opts.Keys)
	for i := range opts.Members {
		p := ports[portsEach*i:]
		at := func(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }
		m := &Member{ID: i + 1, addr: at(p[2]), peer: at(p[0]), election: at(p[1]), wrapper: opts.Wrapper}
		if opts.Addrs != nil {
			m.addr = opts.Addrs[i]
		}
		if opts.Members == 1 && keys["standaloneEnabled"] != "false" {
			keys["clientPortAddress"], keys["clientPort"], _ = strings.Cut(m.addr, ":")
		} else {
			keys[fmt.Sprintf("server.%d", m.ID)] = fmt.Sprintf("127.0.0.1:%d:%d:participant;%s", p[0], p[1], m.addr)
		}
		e.Members = append(e.Members, m)
	}
	for _, m := range e.Members {
		m.dir = filepath.Join(e.dir, strconv.Itoa(m.ID))
		data := m.DataDir()
		must.Do(os.MkdirAll(data, 0o755))
		must.Do(os.WriteFile(filepath.Join(data, "myid"), fmt.Appendln(nil, m.ID), 0o644))
		if opts.Prepare != nil {
			must.Do(opts.Prepare(data))
		}
		keys["dataDir"] = data
		o := Options{Keys: maps.Clone(keys), JVMFlags: opts.JVMFlags}
		if opts.Audit {
			o.AuditLog = m.AuditLog()
		}
		m.command = k.configured(ctx, m.dir, o)
	}
}
