package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/compat/server"
)

func installHDFS(ctx context.Context, root string) (string, func(context.Context, *world) string) {
	h := &hdfs{hadoop: hadoop{javaProgram: installMaven(ctx, root, "hdfs", "hadoop-hdfs")}}
	return h.version, h.check
}

// hdfs is two NameNodes that share a log of edits in a directory, each with a failover controller.
// Files would need DataNodes, directories do not.
type hdfs struct {
	hadoop
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
	h.configureNodes()
	w.ask(ctx, "format", h.on(first.name, namenode+"NameNode", "-format", "-nonInteractive"))
	must.Do(os.CopyFS(second.data, os.DirFS(first.data)))
	w.ask(ctx, "format-zk", h.on(first.name, controllerClass, "-formatZK", "-nonInteractive"))
	for _, n := range h.nodes {
		h.startNode(n)
		h.startController(n)
	}
	h.awaitActive(ctx, nil)
	writer := w.startWorker("writer", h.on(first.name, "HdfsClient", "write"))
	w.aroundLeader(ctx, func() { writer.more(ctx, w, some) })

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
	w.awaitCard(ctx, "Hadoop HA", "cluster: a name node is active")
	writer.more(ctx, w, some)
	acked := values(writer.end(ctx), "acked")
	must.Do(kept(acked, values(w.ask(ctx, "read", h.on(first.name, "HdfsClient", "read")), "got")))
	return fmt.Sprintf("%d directories, none lost in two failovers", len(acked))
}

const (
	namenode        = "org.apache.hadoop.hdfs.server.namenode."
	controllerClass = "org.apache.hadoop.hdfs.tools.DFSZKFailoverController"
)

// configureNodes writes the configuration of each NameNode.
func (h *hdfs) configureNodes() {
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
		h.configure(n.name, keys, "core-site.xml", "hdfs-site.xml")
		// The web pages are not in the packages of Maven.
		for _, pages := range []string{"hdfs", "static"} {
			must.Do(os.MkdirAll(filepath.Join(h.conf(n.name), "webapps", pages), 0o755))
		}
	}
}

func (h *hdfs) startNode(n *nameNode) {
	n.process = h.start(n.name, h.on(n.name, namenode+"NameNode"))
}

func (h *hdfs) startController(n *nameNode) {
	n.controller = h.start("zkfc-"+n.name, h.on(n.name, controllerClass))
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
	place := fmt.Sprintf("http://127.0.0.1:%d/jmx?qry=Hadoop:service=NameNode,name=NameNodeStatus", n.http)
	var status struct{ Beans []struct{ State string } }
	text, err := httpDo(ctx, http.MethodGet, place, "")
	if err == nil {
		err = json.Unmarshal(text, &status)
	}
	for _, bean := range status.Beans {
		state = bean.State
	}
	return state, err
}
