// Command programs runs programs that need ZooKeeper, unchanged, on an ensemble of three gozkd
// servers and on an ensemble of the ZooKeeper of test/compat/java/pom.xml, and kills the ensemble's
// leader while the programs work. See docs/quality/compatibility.md.
//
// Exit status: 1 if a check fails on either server, or a program cannot be run; 2 for wrong usage.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/compat/choose"
	"github.com/gozkd/gozkd/test/compat/install"
	"github.com/gozkd/gozkd/test/compat/server"
)

// program is a program that needs ZooKeeper.
type program struct {
	name string
	// checked describes the check in a few words, for the table.
	checked string
	// install fetches the program and returns its version and a function that runs it on an
	// ensemble. The function returns figures for the table and ends at the first failed check, as
	// package must does.
	install func(ctx context.Context, root string) (version string, check func(ctx context.Context, w *world) string)
}

func programs() []program {
	return []program{
		{"kafka", "produce and consume, its controller killed, topics created", installKafka},
		{"bookkeeper", "ledgers written and read, the auditor killed, its copies replaced", installBookKeeper},
		{"helix", "partitions balanced, a participant and the active controller killed", installHelix},
		{"patroni", "rows committed, the primary killed and returned", installPatroni},
		{"clickhouse", "rows inserted, a column added, a replica killed and returned", installClickHouse},
		{"hdfs", "directories made, the active NameNode and then a failover controller killed", installHDFS},
		{"hbase", "rows put, the active master and then a region server killed", installHBase},
		{"solr", "documents added, the node with the shard's leader killed and returned", installSolr},
		{"curator", "services registered, latch and lock contended, the leading member killed", installCurator},
		{"vitess", "its own tests of topologies, changes in a shard's lock, a worker killed", installVitess},
		{"tooz", "work in a lock, the elected member of a group killed", installTooz},
		{"telegraf", "the metrics of each member, znodes created", installTelegraf},
	}
}

// checkTimeout bounds the run of a program on a server. The slowest takes about two minutes.
const checkTimeout = 15 * time.Minute

func main() { must.Program("programs", run) }

func run(ctx context.Context, flags *flag.FlagSet, args []string) {
	name, itself := func(p program) string { return p.name }, func(s string) string { return s }
	root := install.Root(ctx)
	wanted := flags.String("program", "all", "comma-separated: "+choose.Names(programs(), name)+", all")
	servers := flags.String("server", "all", "comma-separated: gozkd, zookeeper, all")
	binary := flags.String("gozkd", "", "the gozkd to test (default: build cmd/gozkd)")
	logs := flags.String("logs", "", "keep the output of the programs and servers in this folder")
	must.Parsed(flags.Parse(args))
	chosen := must.Get(choose.From(programs(), name, *wanted))
	on := must.Get(choose.From([]string{"gozkd", "zookeeper"}, itself, *servers))
	dir := must.Get(os.MkdirTemp("", "gozkd-programs-"))
	defer func() { must.Do(os.RemoveAll(dir)) }()
	kinds := server.Twins(ctx, *binary, dir)
	good := true
	fmt.Print("| program | version | checked | server | result | time |\n| --- | --- | --- | --- | --- | --- |\n")
	for _, p := range chosen {
		version, check := p.install(ctx, root)
		for _, s := range on {
			w := &world{name: s, kind: kinds[1], dir: filepath.Join(dir, p.name+"-"+s), logs: *logs}
			if s == "zookeeper" {
				w.kind = kinds[0]
			}
			started := time.Now()
			var figures string
			err := must.Try(func() { figures = w.run(ctx, check) })
			if err != nil {
				figures, good = "FAILED", false
			}
			fmt.Printf("| %s | %s | %s | %s | %s | %d s |\n", p.name, version, p.checked, w.name, figures, int(time.Since(started).Seconds()))
			if err != nil {
				fmt.Fprintf(os.Stderr, "%s on %s: %v\n", p.name, w.name, err)
			}
		}
	}
	if !good {
		must.Failf("a check failed")
	}
}
