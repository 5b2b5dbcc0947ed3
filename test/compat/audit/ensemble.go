package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/test/compat/server"
)

// ensembleKeys are auditKeys for an ensemble that clients may change.
func ensembleKeys() map[string]string {
	keys := auditKeys()
	keys["reconfigEnabled"], keys["standaloneEnabled"] = "true", "false"
	return keys
}

// playedOnEnsemble plays the script of an ensemble, stops it, and returns the audit logs of the
// leader and of both followers.
func playedOnEnsemble(ctx context.Context, e *server.Ensemble, err error) (logs [][]string) {
	must.Do(err)
	defer must.Finally(e.Stop)
	order := []*server.Member{must.Get(e.Leader(ctx))}
	for _, m := range e.Members {
		if m != order[0] {
			order = append(order, m)
		}
	}
	if err := must.Try(func() { playEnsemble(order) }); err != nil {
		must.Failf("%s: %w\n%s", e.Name(), err, e.Log())
	}
	for i, m := range order {
		logs = append(logs, normalized(awaitEnd(m.AuditLog(), text("/end-%d", i))))
	}
	return logs
}

// playEnsemble plays on the leader and both followers.
func playEnsemble(order []*server.Member) {
	var clients []*client
	for _, m := range order {
		clients = append(clients, connect(m.Addr(), long))
	}
	for i, c := range clients {
		c.do(proto.OpCreate, create(proto.OpCreate, text("/n%d", i), 0, 0, open))
		c.do(proto.OpDelete, remove("/none", -1))
		c.do(proto.OpMulti, multi(proto.MultiOp{Op: proto.OpSetData, Path: text("/n%d", i), Version: -1}))
		c.do(proto.OpMulti, multi(proto.MultiOp{Op: proto.OpSetData, Path: "/none", Version: -1}))
		closing := connect(order[i].Addr(), long)
		closing.do(proto.OpCreate, create(proto.OpCreate, text("/closing%d", i), proto.ModeEphemeral, 0, open))
		closing.close()
		expiring := connect(order[i].Addr(), short)
		expiring.do(proto.OpCreate, create(proto.OpCreate, text("/expiring%d", i), proto.ModeEphemeral, 0, open))
		_ = expiring.conn.Close()
		for _, other := range clients {
			other.awaitGone(text("/expiring%d", i))
		}
	}
	c := clients[1]
	c.do(proto.OpCreateContainer, create(proto.OpCreateContainer, "/collected", proto.ModeContainer, 0, open))
	c.do(proto.OpCreate, create(proto.OpCreate, "/collected/x", 0, 0, open))
	c.do(proto.OpDelete, remove("/collected/x", -1))
	c.awaitGone("/collected")
	leaving := fmt.Sprint(order[2].ID)
	c.do(proto.OpReconfig, (&proto.ReconfigRequest{Leaving: &leaving, ConfigID: -1}).Append(nil))
	c.identify("digest", "super:"+server.SuperPassword)
	c.do(proto.OpReconfig, (&proto.ReconfigRequest{Leaving: &leaving, ConfigID: 12345}).Append(nil))
	for i, c := range clients {
		c.do(proto.OpCreate, create(proto.OpCreate, text("/end-%d", i), 0, 0, open))
	}
}

// awaitEnd returns the content of a log that has a line of the znode.
func awaitEnd(log, znode string) string {
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		content, err := os.ReadFile(log)
		if strings.Contains(string(content), "znode="+znode+"\t") {
			return string(content)
		}
		if time.Now().After(end) {
			must.Failf("%s has no %s: %w", log, znode, err)
		}
	}
}
