package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/compat/install"
	"github.com/gozkd/gozkd/test/compat/server"
)

func installClickHouse(ctx context.Context, root string) (string, func(context.Context, *world) string) {
	c := &clickHouse{}
	var version string
	c.installed, version = install.ClickHouse(ctx, root)
	return version, c.check
}

// clickHouse is two servers with a replicated table.
type clickHouse struct {
	installed string // the directory of its files
	*world
	replicas []*clickHouseReplica
	acked    []string
	count    atomic.Int64 // length of acked
}

type clickHouseReplica struct {
	name                    string
	http, tcp, interservers int // ports
	process                 atomic.Pointer[server.Process]
	down                    atomic.Bool // revive leaves the replica dead
}

// check adds a column and kills the ensemble's leader and then a replica while rows are inserted.
// An insert that fails is repeated, possibly on the other replica: ClickHouse keeps the hashes of
// inserts in ZooKeeper to insert such a block once.
//
// A replica that ends by itself is started again, as a service manager does: this version may abort
// when its connection to ZooKeeper breaks.
func (c *clickHouse) check(ctx context.Context, w *world) string {
	const replicas, some = 2, 150
	c.world, c.replicas, c.acked = w, nil, nil
	c.count.Store(0)
	ports := must.Get(server.FreePorts(3 * replicas))
	for i := range replicas {
		r := &clickHouseReplica{name: fmt.Sprintf("replica-%d", i), http: ports[i], tcp: ports[replicas+i], interservers: ports[2*replicas+i]}
		c.replicas = append(c.replicas, r)
		c.startReplica(r)
		c.await(ctx, r.name, func() error {
			_, err := c.query(ctx, r, "SELECT 1", "")
			return err
		})
		must.Get(c.query(ctx, r, "CREATE TABLE numbers (number String) ENGINE = ReplicatedMergeTree('/clickhouse/tables/numbers', '"+r.name+"') ORDER BY number", ""))
	}
	var stop atomic.Bool
	must.All(func() {
		for number := 0; !stop.Load(); number++ {
			c.insert(ctx, number)
		}
	}, func() {
		defer stop.Store(true)
		c.more(ctx, some)
		must.Get(c.query(ctx, c.replicas[0], "ALTER TABLE numbers ADD COLUMN added UInt8", ""))
		w.aroundLeader(ctx, func() { c.more(ctx, some) })
		victim := c.replicas[1]
		victim.down.Store(true)
		must.Do(victim.process.Load().Kill())
		c.more(ctx, some)
		victim.down.Store(false)
		c.more(ctx, some)
	})
	for _, r := range c.replicas {
		var rows string
		c.await(ctx, "all rows on "+r.name, func() (err error) {
			c.revive()
			must.Get(c.query(ctx, r, "SYSTEM SYNC REPLICA numbers", ""))
			rows, err = c.query(ctx, r, "SELECT number FROM numbers WHERE added = 0 FORMAT TSV", "")
			return err
		})
		must.Doing(r.name, func() { must.Do(kept(c.acked, strings.Fields(rows))) })
	}
	facts := "SELECT concat(toString(active_replicas), ' replicas', ',', if(is_readonly, 'read-only', 'all writable')) FROM system.replicas"
	w.awaitCard(ctx, "ClickHouse", strings.Split(strings.TrimSpace(must.Get(c.query(ctx, c.replicas[0], facts, ""))), ",")...)
	return fmt.Sprintf("%d inserts, each once on both replicas", len(c.acked))
}

// insert sends the insert of a number to one replica after the other until a replica acknowledges
// the insert.
func (c *clickHouse) insert(ctx context.Context, number int) {
	row := strconv.Itoa(number)
	c.await(ctx, "the insert of "+row, func() error {
		var errs []error
		for i := range c.replicas {
			c.revive()
			_, err := c.query(ctx, c.replicas[(number+i)%len(c.replicas)], "INSERT INTO numbers (number) FORMAT TSV", row+"\n")
			if err == nil {
				c.acked = append(c.acked, row)
				c.count.Store(int64(len(c.acked)))
				return nil
			}
			errs = append(errs, err)
		}
		return errors.Join(errs...)
	})
}

// revive starts the replicas that have ended and are not marked down.
func (c *clickHouse) revive() {
	for _, r := range c.replicas {
		if !r.process.Load().Running() && !r.down.Load() {
			c.startReplica(r)
		}
	}
}

func (c *clickHouse) startReplica(r *clickHouseReplica) {
	data := filepath.Join(c.dir, r.name)
	members := make(map[int]string) // ports
	for i, addr := range c.ensemble.Addrs() {
		_, members[i+1], _ = strings.Cut(addr, ":")
	}
	config := c.configure("clickhouse/replica.xml", r.name+".xml", map[string]any{
		"HTTP": r.http, "TCP": r.tcp, "Interservers": r.interservers, "Data": data, "Installed": c.installed, "Members": members,
	})
	must.Do(os.MkdirAll(data, 0o755))
	// Debian has the library of regular expressions below /lib.
	libraries := install.DebLibraries(c.installed) + ":" + strings.Join(must.Get(filepath.Glob(filepath.Join(c.installed, "lib/*-linux-gnu*"))), ":")
	cmd := exec.Command(filepath.Join(c.installed, "usr/sbin/clickhouse-server"), "--config-file="+config)
	cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+libraries)
	cmd.Dir = data
	r.process.Store(c.start(r.name, cmd))
}

// more waits until n more inserts are acknowledged.
func (c *clickHouse) more(ctx context.Context, n int) {
	target := c.count.Load() + int64(n)
	c.await(ctx, fmt.Sprintf("%d inserts", target), func() error {
		if got := c.count.Load(); got < target {
			return fmt.Errorf("%d inserts of %d", got, target)
		}
		return nil
	})
}

// query sends a query with its data to a replica and returns the answer.
func (c *clickHouse) query(ctx context.Context, r *clickHouseReplica, query, data string) (answer string, err error) {
	place := fmt.Sprintf("http://127.0.0.1:%d/?query=%s", r.http, url.QueryEscape(query))
	text, err := httpDo(ctx, http.MethodPost, place, data)
	return string(text), err
}
