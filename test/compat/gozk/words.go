package gozk

import (
	"context"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/internal/testkit/must"
)

// wordTimeout bounds an exchange of a four-letter word.
const wordTimeout = 5 * time.Second

// words leaves out FLWSrvr: the client expects ZooKeeper's build date as printed before 3.6.
func (s *script) words() []work {
	return []work{
		{"flw_ruok", s.ruok},
		{"flw_cons", s.cons},
	}
}

func (s *script) ruok(context.Context, *zk.Conn, string) {
	if got := zk.FLWRuok([]string{s.addr}, wordTimeout); len(got) != 1 || !got[0] {
		must.Failf("got %v", got)
	}
}

func (s *script) cons(_ context.Context, c *zk.Conn, _ string) {
	// NB: the flag that FLWCons returns is false on every ZooKeeper: it cannot parse the line of
	// the asking connection.
	got, _ := zk.FLWCons([]string{s.addr}, wordTimeout)
	if len(got) != 1 {
		must.Failf("got %+v", got)
	}
	for _, client := range got[0].Clients {
		if client.SessionID == c.SessionID() {
			if client.Received < 1 || client.Timeout != int32(sessionTimeout/time.Millisecond) {
				must.Failf("got %+v", client)
			}
			return
		}
	}
	must.Failf("the client's own connection is not among them")
}
