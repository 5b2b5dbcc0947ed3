package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/compat/server"
)

func installHDFS(ctx context.Context, root string) (string, func(context.Context, *world) string) {
	h := &hdfs{javaProgram: installMaven(ctx, root, "hdfs", "hadoop-hdfs")}
	return h.version, h.check
}

// hdfs is two NameNodes that share a log of edits in a directory, each with a failover controller.
// Files would need DataNodes, directories do not.
type hdfs struct {
	javaProgram
	*world
	nodes []*nameNode
}

type nameNode struct {
	name, data          string
	rpc, http, zkfc     int // ports
	process, controller *server.Process
}

// check kills the ensemble's leader, then the active NameNode, then the failover controller of the
// active NameNode, while directories are made.
func (h *hdfs) check(ctx context.Context, w *world) string {
	const some = 200
	h.world, h.nodes = w, nil
	ports := must.Get(server.FreePorts(6))
	for i := range 2 {
		name := fmt.Sprintf("nn%d", i+1)
		n := &nameNode{name: name, data: filepath.Join(w.dir, name)}
		n.rpc, n.http, n.zkfc = ports[3*i], ports[3*i+1], ports[3*i+2]
		h.nodes = append(h.nodes, n)
	}
	first, second := h.nodes[0], h.nodes[1]
	h.configure()
	w.ask(ctx, "format", h.on(first, namenode+"NameNode", "-format", "-nonInteractive"))
	must.Do(os.CopyFS(second.data, os.DirFS(first.data)))
	w.ask(ctx, "format-zk", h.on(first, controllerClass, "-formatZK", "-nonInteractive"))
	for _, n := range h.nodes {
		h.startNode(n)
		h.startController(n)
	}
	h.awaitActive(ctx, nil)
	writer := w.startWorker("writer", h.on(first, "HdfsClient", "write"))
	writer.more(ctx, w, some)
	w.killLeader(ctx)
	writer.more(ctx, w, some)
	w.returnLeader(ctx)
	writer.more(ctx, w, some)

	old := h.awaitActive(ctx, nil)
	must.Do(old.process.Kill())
	h.awaitActive(ctx, old)
	writer.more(ctx, w, some)
	h.startNode(old)
	w.await(ctx, old.name+" as a standby", func() error {
		if state, err := h.state(ctx, old); err != nil || state != "standby" {
			return fmt.Errorf("%s is %q: %w", old.name, state, err)
		}
		return nil
	})
	old = h.awaitActive(ctx, nil)
	must.Do(old.controller.Kill())
	h.awaitActive(ctx, old)
	writer.more(ctx, w, some)
	acked := values(writer.end(ctx), "acked")
	must.Do(kept(acked, values(w.ask(ctx, "read", h.on(first, "HdfsClient", "read")), "got")))
	return fmt.Sprintf("%d directories, none lost in two failovers", len(acked))
}

const logging = `log4j.rootLogger=WARN,out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%d{ISO8601} %-5p [%t:%c{1}] - %m%n
`

const (
	namenode        = "org.apache.hadoop.hdfs.server.namenode."
	controllerClass = "org.apache.hadoop.hdfs.tools.DFSZKFailoverController"
)

// configure writes core-site.xml and hdfs-site.xml of each NameNode.
func (h *hdfs) configure() {
	keys := map[string]string{
		"fs.defaultFS": "hdfs://cluster", "hadoop.tmp.dir": filepath.Join(h.dir, "tmp"),
		"ha.zookeeper.quorum": h.connect(","), "ha.zookeeper.session-timeout.ms": "5000",
		"dfs.nameservices": "cluster", "dfs.ha.namenodes.cluster": "nn1,nn2", "dfs.permissions.enabled": "false",
		"dfs.namenode.shared.edits.dir":              "file://" + filepath.Join(h.dir, "shared"),
		"dfs.client.failover.proxy.provider.cluster": namenode + "ha.ConfiguredFailoverProxyProvider",
		"dfs.ha.fencing.methods":                     "shell(/bin/true)",
		"dfs.ha.automatic-failover.enabled":          "true",
		"dfs.ha.tail-edits.period":                   "1",
	}
	for _, n := range h.nodes {
		keys["dfs.namenode.rpc-address.cluster."+n.name] = fmt.Sprintf("127.0.0.1:%d", n.rpc)
		keys["dfs.namenode.http-address.cluster."+n.name] = fmt.Sprintf("127.0.0.1:%d", n.http)
		keys["dfs.ha.zkfc.port.cluster."+n.name] = fmt.Sprint(n.zkfc)
		keys["dfs.namenode.name.dir.cluster."+n.name] = "file://" + n.data
	}
	for _, n := range h.nodes {
		keys["dfs.ha.namenode.id"] = n.name
		var xml strings.Builder
		for key, value := range keys {
			fmt.Fprintf(&xml, "<property><name>%s</name><value>%s</value></property>\n", key, value)
		}
		// The web pages are not in the packages of Maven.
		for _, pages := range []string{"hdfs", "static"} {
			must.Do(os.MkdirAll(filepath.Join(h.conf(n), "webapps", pages), 0o755))
		}
		site := "<configuration>\n" + xml.String() + "</configuration>\n"
		files := map[string]string{"core-site.xml": site, "hdfs-site.xml": site, "log4j.properties": logging}
		for file, text := range files {
			must.Do(os.WriteFile(filepath.Join(h.conf(n), file), []byte(text), 0o644))
		}
	}
}

func (h *hdfs) conf(n *nameNode) string { return filepath.Join(h.dir, "conf-"+n.name) }

// on returns the command that runs a class with the configuration of a NameNode.
func (h *hdfs) on(n *nameNode, class string, args ...string) *exec.Cmd {
	program := h.javaProgram
	program.classPath = h.conf(n) + string(filepath.ListSeparator) + program.classPath
	return program.command(h.world, class, args...)
}

func (h *hdfs) startNode(n *nameNode) {
	n.process = h.start(n.name, h.on(n, namenode+"NameNode"))
}

func (h *hdfs) startController(n *nameNode) {
	n.controller = h.start("zkfc-"+n.name, h.on(n, controllerClass))
}

// awaitActive waits until one NameNode other than the given one is active, and returns it.
func (h *hdfs) awaitActive(ctx context.Context, except *nameNode) (active *nameNode) {
	h.await(ctx, "an active NameNode", func() error {
		active = nil
		var states []string
		for _, n := range h.nodes {
			state, err := h.state(ctx, n)
			states = append(states, fmt.Sprintf("%s: %s %v", n.name, state, err))
			if state == "active" && n != except {
				active = n
			}
		}
		if active == nil {
			return fmt.Errorf("%s", strings.Join(states, ", "))
		}
		return nil
	})
	return active
}

// state returns the state that a NameNode shows.
func (h *hdfs) state(ctx context.Context, n *nameNode) (state string, err error) {
	err = must.Try(func() {
		place := fmt.Sprintf("http://127.0.0.1:%d/jmx?qry=Hadoop:service=NameNode,name=NameNodeStatus", n.http)
		request := must.Get(http.NewRequestWithContext(ctx, http.MethodGet, place, nil))
		reply := must.Get(http.DefaultClient.Do(request))
		defer must.Finally(reply.Body.Close)
		var answer struct{ Beans []struct{ State string } }
		must.Do(json.NewDecoder(reply.Body).Decode(&answer))
		for _, bean := range answer.Beans {
			state = bean.State
		}
	})
	return state, err
}
