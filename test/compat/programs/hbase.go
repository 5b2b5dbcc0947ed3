package main

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strconv"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/compat/server"
)

func installHBase(ctx context.Context, root string) (string, func(context.Context, *world) string) {
	h := &hbase{hadoop{javaProgram: installMaven(ctx, root, "hbase", "hbase-server")}}
	for _, p := range []string{"java.io", "java.lang", "java.lang.reflect", "java.nio", "java.util", "java.util.concurrent",
		"jdk.internal.misc", "sun.nio.ch"} {
		h.flags = append(h.flags, "--add-opens=java.base/"+p+"=ALL-UNNAMED")
	}
	return h.version, h.check
}

// hbase is two masters and two region servers that share a directory.
type hbase struct{ hadoop }

const hbaseClasses = "org.apache.hadoop.hbase."

// hbaseServer is a master or a region server.
type hbaseServer struct {
	name, class, prefix string // of its keys
	rpc                 int
	process             *server.Process
}

// check kills the ensemble's leader, then the active master, then a region server, while rows are
// put. Clients find the master and the table hbase:meta through ZooKeeper.
func (h *hbase) check(ctx context.Context, w *world) string {
	const some = 200
	h.world = w
	ports := must.Get(server.FreePorts(4))
	masters := []*hbaseServer{h.master("master1", ports[0]), h.master("master2", ports[1])}
	regions := []*hbaseServer{h.region("region1", ports[2]), h.region("region2", ports[3])}
	h.configureFor(&hbaseServer{name: "client"})
	for _, s := range slices.Concat(masters, regions) {
		h.startServer(s)
	}
	h.awaitState(ctx, masters, regions)
	w.ask(ctx, "create", h.client("create"))
	writer := w.startWorker("writer", h.client("write"))
	w.aroundLeader(ctx, func() { writer.more(ctx, w, some) })

	active := h.awaitState(ctx, masters, regions)
	must.Do(active.process.Kill())
	h.awaitState(ctx, without(masters, active), regions)
	writer.more(ctx, w, some)
	h.startServer(active)

	must.Do(regions[0].process.Kill())
	h.awaitState(ctx, masters, regions[1:])
	writer.more(ctx, w, some)
	h.startServer(regions[0])
	h.awaitState(ctx, masters, regions)
	writer.more(ctx, w, some)
	acked := values(writer.end(ctx), "acked")
	w.awaitCard(ctx, "HBase", values(h.ask(ctx, "state", h.client("state")), "card")...)
	must.Do(kept(acked, values(w.ask(ctx, "read", h.client("read")), "got")))
	return fmt.Sprintf("%d rows, none lost when a master and a region server were killed", len(acked))
}

func without(all []*hbaseServer, one *hbaseServer) []*hbaseServer {
	return slices.DeleteFunc(slices.Clone(all), func(s *hbaseServer) bool { return s == one })
}

func (h *hbase) master(name string, port int) *hbaseServer {
	return &hbaseServer{name: name, class: hbaseClasses + "master.HMaster", prefix: "hbase.master.", rpc: port}
}

func (h *hbase) region(name string, port int) *hbaseServer {
	class := hbaseClasses + "regionserver.HRegionServer"
	return &hbaseServer{name: name, class: class, prefix: "hbase.regionserver.", rpc: port}
}

// configureFor writes the configuration of a server, or of the client, which has no port.
func (h *hbase) configureFor(s *hbaseServer) {
	values := map[string]any{"Dir": h.dir, "ZooKeeper": h.connect(","), "Prefix": s.prefix, "Port": s.rpc}
	h.configure(s.name, "hbase/site.xml", values, "hbase-site.xml")
}

func (h *hbase) client(args ...string) *exec.Cmd { return h.on("client", "HBaseClient", args...) }

func (h *hbase) startServer(s *hbaseServer) {
	h.configureFor(s)
	s.process = h.start(s.name, h.on(s.name, s.class, "start"))
}

// awaitState waits until one of masters is active and just these region servers live, and returns
// the active master.
func (h *hbase) awaitState(ctx context.Context, masters, regions []*hbaseServer) (active *hbaseServer) {
	h.await(ctx, "a master and its region servers", func() error {
		state := h.ask(ctx, "state", h.client("state"))
		found := values(state, "master")
		i := slices.IndexFunc(masters, func(s *hbaseServer) bool { return slices.Contains(found, strconv.Itoa(s.rpc)) })
		live := values(state, "server")
		for _, s := range regions {
			if !slices.Contains(live, strconv.Itoa(s.rpc)) {
				return fmt.Errorf("%s is not among the region servers %v", s.name, live)
			}
		}
		if i < 0 || len(live) != len(regions) {
			return fmt.Errorf("the master is %v, region servers are %v", found, live)
		}
		active = masters[i]
		return nil
	})
	return active
}
