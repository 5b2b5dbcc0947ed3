package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/compat/server"
)

func installSolr(ctx context.Context, root string) (string, func(context.Context, *world) string) {
	s := &solr{javaProgram: installMaven(ctx, root, "solr", "solr-test-framework")}
	return s.version, s.check
}

// solr is two nodes of SolrCloud, each with a replica of a shard.
type solr struct {
	javaProgram
	*world
	nodes map[string]*server.Process // by name
}

// check kills the ensemble's leader and then the node with the shard's leader, while documents are
// added.
func (s *solr) check(ctx context.Context, w *world) string {
	const nodes, some = 2, 150
	s.world, s.nodes = w, make(map[string]*server.Process)
	s.flags = []string{"-Dsolr.log.dir=" + w.dir}
	for _, port := range must.Get(server.FreePorts(nodes)) {
		s.startNode(port)
	}
	w.await(ctx, "the nodes", func() error {
		if live := values(s.client(ctx, "view"), "live"); len(live) != nodes {
			return fmt.Errorf("live are %s", live)
		}
		return nil
	})
	s.client(ctx, "setup", filepath.Join(w.dir, "conf"))
	s.awaitLeader(ctx, nodes)
	writer := w.startWorker("writer", s.command(w, "SolrProgram", "write", w.connect(",")))
	w.aroundLeader(ctx, func() { writer.more(ctx, w, some) })

	old := s.awaitLeader(ctx, nodes)
	must.Do(s.nodes[old].Kill())
	if again := s.awaitLeader(ctx, nodes-1); again == old {
		must.Failf("%s, which was killed, still leads", old)
	}
	writer.more(ctx, w, some)
	_, port, _ := strings.Cut(strings.TrimSuffix(old, "_solr"), ":")
	s.startNode(must.Get(strconv.Atoi(port)))
	s.awaitLeader(ctx, nodes)
	acked := values(writer.end(ctx), "acked")
	must.Do(kept(acked, values(s.client(ctx, "read"), "got")))
	w.awaitCard(ctx, "Solr", values(s.client(ctx, "card"), "card")...)
	return fmt.Sprintf("%d documents, each once", len(acked))
}

func (s *solr) startNode(port int) {
	name := fmt.Sprintf("127.0.0.1:%d_solr", port)
	home := filepath.Join(s.dir, fmt.Sprintf("solr-%d", port))
	s.nodes[name] = s.start(filepath.Base(home),
		s.command(s.world, "SolrProgram", "node", s.connect(","), home, strconv.Itoa(port)))
}

// client runs a command of SolrProgram and returns its output.
func (s *solr) client(ctx context.Context, command string, args ...string) string {
	return s.ask(ctx, command, s.command(s.world, "SolrProgram", append([]string{command, s.connect(",")}, args...)...))
}

// awaitLeader waits until this many replicas are active and one of them leads, and returns the
// leader's node.
func (s *solr) awaitLeader(ctx context.Context, replicas int) (leader string) {
	s.await(ctx, fmt.Sprintf("%d replicas and a leader", replicas), func() error {
		view := s.client(ctx, "view")
		active, leaders := values(view, "active"), values(view, "leader")
		if len(active) != replicas || len(leaders) != 1 || !slices.Contains(active, leaders[0]) {
			return fmt.Errorf("active are %s, leaders %s", active, leaders)
		}
		leader = leaders[0]
		return nil
	})
	return leader
}
