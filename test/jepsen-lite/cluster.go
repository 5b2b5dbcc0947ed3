//go:build linux

package jepsenlite

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/compat/server"
)

// A Product is a server to run as a member.
type Product struct {
	Name string
	// Command is the command line before the path of zoo.cfg.
	Command []string
	// Previous is the same for another version, which can use the same data; nil: there is none.
	Previous []string
}

// ClusterConfig describes a cluster: the members of Options, whose ids are 1 ... Members, and how
// their data are kept. Dir gets a directory per member, emptied first.
type ClusterConfig struct {
	Options
	// SmallDisk puts the last member's data on a disk of SmallDiskBytes, to be filled. Needs root.
	SmallDisk bool
	// LoopDisks puts the data of the other members on disks of SmallDiskBytes, which can be frozen.
	// Needs what canFreeze checks.
	LoopDisks bool
	// Burst adds burstKeys to the configuration.
	Burst bool
}

// SmallDiskBytes has room for ZooKeeper's preallocation and a run's data.
const SmallDiskBytes = 1 << 30

// A Cluster is an ensemble whose members reach each other by names that resolve differently for
// each of them: to a proxy of this process per peer. Its methods are not safe for concurrent use,
// those of its Links are.
type Cluster struct {
	cfg     ClusterConfig
	net     addresses
	Members []*Member
	Links   *Links
}

// NewCluster prepares members with empty data directories and starts none. Close releases all.
func NewCluster(cfg ClusterConfig) *Cluster {
	c := &Cluster{cfg: cfg}
	c.net, c.Links = newLinks(cfg.Members, cfg.RoundTrip, cfg.LossPercent)
	if err := must.Try(c.layOut); err != nil {
		must.Do(errors.Join(err, c.Close()))
	}
	return c
}

func (c *Cluster) layOut() {
	for id := 1; id <= c.cfg.Members; id++ {
		m := &Member{ID: id, alone: c.cfg.Members == 1, Client: c.net.client(id), product: c.cfg.Product,
			dir: filepath.Join(c.cfg.Dir, fmt.Sprintf("member-%d", id))}
		must.Do(os.RemoveAll(m.dir))
		must.Do(os.MkdirAll(m.dataDir(), 0o755))
		c.Members = append(c.Members, m)
		switch {
		case c.cfg.SmallDisk && id == c.cfg.Members:
			m.mountSmallDisk(SmallDiskBytes)
		case c.cfg.LoopDisks:
			m.mountLoopDisk(SmallDiskBytes)
		}
		must.Do(os.WriteFile(filepath.Join(m.dir, "hosts"), []byte(c.net.hosts(id)), 0o644))
		c.writeConfig(m)
		m.writeMyID()
	}
}

// writeConfig writes a member's initial zoo.cfg. ZooKeeper rewrites it when the membership changes.
func (c *Cluster) writeConfig(m *Member) {
	must.Do(os.WriteFile(filepath.Join(m.dir, "zoo.cfg"), []byte(c.zooCfg(m.ID)), 0o644))
}

// Start starts a member unless it runs, and lets its peers connect. It does not wait.
func (c *Cluster) Start(m *Member) {
	if !m.Running() {
		c.Links.Listen(m.ID)
		m.Start()
	}
}

// Kill ends a member as kill -9 does and waits for its end. Peers are refused from then on.
func (c *Cluster) Kill(m *Member) {
	m.Kill()
	c.Links.Refuse(m.ID)
}

// Close ends the members and the links and waits for them. The members' files stay, except on the
// small disk and the loop disks.
func (c *Cluster) Close() error {
	var errs []error
	for _, m := range c.Members {
		errs = append(errs, must.Try(m.Kill), must.Try(m.unmount))
	}
	return errors.Join(append(errs, must.Try(c.Links.Close))...)
}

// StartAll starts every member, and returns when all serve.
func (c *Cluster) StartAll(ctx context.Context) {
	for _, m := range c.Members {
		c.Start(m)
	}
	c.AwaitServing(ctx)
}

// errUnrecovered is wrapped by the error of AwaitServing: an anomaly, unless ctx has ended early.
var errUnrecovered = errors.New("jepsenlite: the members do not serve")

// AwaitServing returns when every member serves, as follower or observer, and one as leader.
func (c *Cluster) AwaitServing(ctx context.Context) {
	must.Await(ctx, recovery, "every member serves", func() error {
		var modes []string
		leaders, serving := 0, 0
		for _, m := range c.Members {
			if !m.Running() {
				must.Failf("%w: %v has ended by itself, see %s", errUnrecovered, m, m.LogPath())
			}
			mode := m.Mode(ctx)
			modes = append(modes, fmt.Sprintf("%d: %s", m.ID, mode))
			switch mode {
			case ModeLeader, ModeStandalone:
				leaders++
				serving++
			case ModeFollower, ModeObserver:
				serving++
			}
		}
		if leaders == 1 && serving == len(c.Members) {
			return nil
		}
		return fmt.Errorf("%w (%s)", errUnrecovered, strings.Join(modes, ", "))
	})
}

// Leader returns the member that reports to lead, or nil.
func (c *Cluster) Leader(ctx context.Context) *Member {
	for _, m := range c.Members {
		if mode := m.Mode(ctx); mode == ModeLeader || mode == ModeStandalone {
			return m
		}
	}
	return nil
}

// isolate cuts a member off from all others.
func (c *Cluster) isolate(m *Member) {
	for _, o := range c.Members {
		if o != m {
			c.Links.Block(m.ID, o.ID)
			c.Links.Block(o.ID, m.ID)
		}
	}
}

// Addresses returns the members' client addresses, in the order of their ids.
func (c *Cluster) Addresses() []string {
	var addrs []string
	for _, m := range c.Members {
		addrs = append(addrs, m.Client)
	}
	return addrs
}

// ServerLine returns the value of server.<id>, the same for every member.
func (c *Cluster) ServerLine(id int) string {
	return fmt.Sprintf("%s:%d:%d:participant;%s", hostName(id), c.net.peerPort, c.net.electionPort, c.net.client(id))
}

// zooCfg returns a member's configuration. A single member has no server lines: it is standalone.
func (c *Cluster) zooCfg(id int) string {
	keys := server.Defaults()
	// A dead peer is dropped after syncLimit ticks, a joining peer after initLimit: enough for a
	// busy machine.
	keys["tickTime"] = strconv.Itoa(int(c.cfg.Tick.Milliseconds()))
	keys["initLimit"], keys["syncLimit"] = "20", "5"
	keys["minSessionTimeout"] = "1000"
	keys["reconfigEnabled"] = "true"
	keys["dataDir"] = filepath.Join(c.cfg.Dir, fmt.Sprintf("member-%d", id), "data")
	if c.cfg.Product.Previous != nil {
		keys["gozkd.maxFeatureLevel"] = "1" // every version has this feature level
	}
	delete(keys, "extendedTypesEnabled")
	delete(keys, "znode.container.checkIntervalMs")
	if c.cfg.SmallDisk && c.cfg.Product.Name == Gozkd && c.cfg.Product.Previous == nil {
		keys["gozkd.diskReserveKB"] = strconv.Itoa(diskReserve >> 10) // counts on each member
		keys["snapCount"] = "100"                                     // a full disk must be noticed before it is freed
	}
	if c.cfg.Burst {
		maps.Copy(keys, burstKeys)
	}
	var b strings.Builder
	if c.cfg.Members == 1 {
		host, port, _ := net.SplitHostPort(c.net.client(id))
		keys["clientPortAddress"], keys["clientPort"] = host, port
	} else {
		for j := 1; j <= c.cfg.Members; j++ {
			fmt.Fprintf(&b, "server.%d=%s\n", j, c.ServerLine(j))
		}
	}
	for k, v := range keys {
		fmt.Fprintf(&b, "%s=%s\n", k, v)
	}
	return b.String()
}
