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
	Name, Data          string
	RPC, HTTP, ZKFC     int // ports
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
		n := &nameNode{Name: name, Data: filepath.Join(w.dir, name)}
		n.RPC, n.HTTP, n.ZKFC = ports[3*i], ports[3*i+1], ports[3*i+2]
		h.nodes = append(h.nodes, n)
	}
	first, second := h.nodes[0], h.nodes[1]
	h.configureNodes()
	w.ask(ctx, "format", h.on(first.Name, namenode+"NameNode", "-format", "-nonInteractive"))
	must.Do(os.CopyFS(second.Data, os.DirFS(first.Data)))
	w.ask(ctx, "format-zk", h.on(first.Name, controllerClass, "-formatZK", "-nonInteractive"))
	for _, n := range h.nodes {
		h.startNode(n)
		h.startController(n)
	}
	h.awaitActive(ctx, nil)
	writer := w.startWorker("writer", h.on(first.Name, "HdfsClient", "write"))
	w.aroundLeader(ctx, func() { writer.more(ctx, w, some) })

	old := h.awaitActive(ctx, nil)
	must.Do(old.process.Kill())
	h.awaitActive(ctx, old)
	writer.more(ctx, w, some)
	h.startNode(old)
	w.await(ctx, old.Name+" as a standby", func() error {
		if state, err := h.state(ctx, old); err != nil || state != "standby" {
			return fmt.Errorf("%s is %q: %w", old.Name, state, err)
		}
		return nil
	})
	old = h.awaitActive(ctx, nil)
	must.Do(old.controller.Kill())
	h.awaitActive(ctx, old)
	w.awaitCard(ctx, "Hadoop HA", "cluster: a name node is active")
	writer.more(ctx, w, some)
	acked := values(writer.end(ctx), "acked")
	must.Do(kept(acked, values(w.ask(ctx, "read", h.on(first.Name, "HdfsClient", "read")), "got")))
	return fmt.Sprintf("%d directories, none lost in two failovers", len(acked))
}

const (
	namenode        = "org.apache.hadoop.hdfs.server.namenode."
	controllerClass = "org.apache.hadoop.hdfs.tools.DFSZKFailoverController"
)

// configureNodes writes the configuration of each NameNode.
func (h *hdfs) configureNodes() {
	for _, n := range h.nodes {
		values := map[string]any{"Dir": h.dir, "ZooKeeper": h.connect(","), "Name": n.Name, "Nodes": h.nodes}
		h.configure(n.Name, "hdfs/site.xml", values, "core-site.xml", "hdfs-site.xml")
		// The web pages are not in the packages of Maven.
		for _, pages := range []string{"hdfs", "static"} {
			must.Do(os.MkdirAll(filepath.Join(h.conf(n.Name), "webapps", pages), 0o755))
		}
	}
}

func (h *hdfs) startNode(n *nameNode) {
	n.process = h.start(n.Name, h.on(n.Name, namenode+"NameNode"))
}

func (h *hdfs) startController(n *nameNode) {
	n.controller = h.start("zkfc-"+n.Name, h.on(n.Name, controllerClass))
}

// awaitActive waits until one NameNode other than the given one is active, and returns it.
func (h *hdfs) awaitActive(ctx context.Context, except *nameNode) (active *nameNode) {
	h.await(ctx, "an active NameNode", func() error {
		active = nil
		var states []string
		for _, n := range h.nodes {
			state, err := h.state(ctx, n)
			states = append(states, fmt.Sprintf("%s: %s %v", n.Name, state, err))
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
	place := fmt.Sprintf("http://127.0.0.1:%d/jmx?qry=Hadoop:service=NameNode,name=NameNodeStatus", n.HTTP)
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
