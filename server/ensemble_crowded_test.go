package server_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/internal/confighook"
	"github.com/gozkd/gozkd/internal/vfs"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server"
)

// standingDisk is a disk on which a checkpoint cannot be read while the member's state is dropped,
// until goOn is closed.
type standingDisk struct {
	vfs.OS
	m    *ensembleMember
	goOn chan struct{}
}

func (d standingDisk) Open(name string) (vfs.File, error) {
	if filepath.Base(name) == "checkpoint.db" && server.Dropped(d.m.s) {
		<-d.goOn
	}
	return d.OS.Open(name)
}

// A member in little memory drops its state to read the one that it received. However long that
// takes, the member tells how it is, and nothing that runs by itself stands still: otherwise the
// time of the bubble would. It follows the leader, and hears that it is cut off.
func TestEnsemble_CrowdedMemberTellsHowItIs(t *testing.T) {
	withEnsemble(t, 3, func(t *testing.T, e *ensemble) {
		const limit, bytes = 2_500_000, 60_000
		e.onDisk()
		goOn := make(chan struct{})
		for _, m := range e.members {
			m.adapt = func(c *server.Config) {
				c.SnapCount, c.DataLimit, c.SyncLimit, c.ReadOnlyMode = 10, limit, 5, true
				h := confighook.Of(c)
				h.Memory, h.MemoryUsed, h.DataFS = 32<<20, func() int64 { return 0 }, standingDisk{m: m, goOn: goOn}
			}
		}
		e.startAll()
		victim := e.followers()[0]
		m := e.m(victim)
		w := e.connect(e.leader(), time.Minute)
		write := func(op proto.OpCode, r record) {
			t.Helper()
			if h, _ := w.call(1, op, r); h.Err != proto.OK {
				t.Fatal(h.Err)
			}
		}
		set := func(i int) {
			write(proto.OpSetData, &proto.SetDataRequest{Path: ballast(i), Data: make([]byte, bytes), Version: -1})
		}
		for i := range ballasts { // more than half of the limit
			write(proto.OpCreate, create{path: ballast(i)})
			set(i)
		}
		time.Sleep(time.Second)
		m.isolate(true)
		e.network.Tear(m.host(), e.m(e.leader()).host()) // so that no message is in flight
		time.Sleep(time.Second)
		for i := range 45 { // more than the log in memory keeps
			set(i)
		}
		time.Sleep(time.Second)
		before := m.s.Status()
		m.isolate(false)
		if !e.becomes(func() bool { return server.Dropped(m.s) }) {
			t.Fatal("the member has not dropped its state, so this test shows nothing")
		}
		status := func(what, mode string, leader int) {
			t.Helper()
			st := m.s.Status()
			if st.Mode != mode || st.Zxid != before.Zxid || st.Serving || st.Leader != leader || st.CatchingUp != (leader != 0) || st.Whole != before.Whole {
				t.Errorf("%s: %+v, before %+v", what, st, before)
			}
		}
		status("at first", "follower", e.leader())
		time.Sleep(20 * time.Second)
		status("after a while", "follower", e.leader())
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := m.s.Ready(ctx); !errors.Is(err, context.DeadlineExceeded) || m.s.NotServing() == nil {
			t.Errorf("ready without a state: %v", err)
		}
		values := map[string]string{}
		for _, v := range m.s.Facts().Monitor() {
			values[v.Name] = fmt.Sprint(v.Is)
		}
		if values["quorum_size"] != "3" || values["peer_state"] == "" || values["znode_count"] == "0" || len(m.s.Facts().Members()) != 3 {
			t.Errorf("mntr without a state: %v", values)
		}
		for _, word := range []string{"srvr", "mntr", "conf", "hash", "ruok"} {
			if answer := e.word(victim, word); answer == "" {
				t.Errorf("%s is not answered", word)
			}
		}
		const cutOff = ": no leader for syncLimit ticks"
		if e.said.Count(m.host()+cutOff) != 0 {
			t.Error("the member has lost its leader while it reads")
		}
		m.isolate(true)
		time.Sleep(20 * time.Second)
		if e.said.Count(m.host()+cutOff) != 1 {
			t.Error("the member has not noticed that it is cut off")
		}
		status("cut off", "read-only", 0)
		r := e.dial(victim)
		hello := &proto.ConnectRequest{TimeoutMs: 10_000, Passwd: make([]byte, proto.PasswdBytes), HasReadOnly: true, ReadOnly: true}
		if _, err := r.nc.Write(frameOf(hello.Append(nil))); err != nil {
			t.Fatal(err)
		}
		if r.tryRecv() != nil || m.s.NotServing() == nil {
			t.Error("a member without a state serves reads")
		}
		m.isolate(false)
		close(goOn)
		e.awaitVoters(1, 2, 3)
		if !e.becomes(func() bool { return m.s.NotServing() == nil }) {
			t.Error("not ready after the state was read")
		}
		states := []string{}
		for _, m := range e.members {
			states = append(states, server.StateOf(m.s))
		}
		if len(slices.Compact(states)) != 1 || strings.HasSuffix(states[0], " 0") {
			t.Errorf("the states differ: %v", states)
		}
	})
}

// All clients have come to one member, as after a restart, and their memory there makes the state
// full. It ends by itself: clients go to the other members, with their sessions and without losing
// an answer. A client that knows no other member is disconnected once in ten minutes.
func TestEnsemble_UnevenClientsSpread(t *testing.T) {
	withEnsemble(t, 3, func(t *testing.T, e *ensemble) {
		const clients, stuck = 240, 48
		e.each(func(c *server.Config) {
			c.DataLimit = 12 << 20
			confighook.Of(c).MemoryUsed = func() int64 { return 0 }
		})
		e.startAll()
		var servers []string
		for _, m := range e.members {
			servers = append(servers, m.clientAddress)
		}
		var reachable atomic.Bool // all members
		dials := make([]atomic.Int32, clients)
		var all []*client.Client
		for i := range clients {
			c, err := client.Connect(t.Context(), client.Config{
				Servers: servers, SessionTimeout: time.Minute,
				Dial: func(ctx context.Context, address string) (net.Conn, error) {
					if address != servers[0] && (i < stuck || !reachable.Load()) {
						return nil, errors.New("not reachable")
					}
					dials[i].Add(1)
					return e.network.Dial(ctx, fmt.Sprint("c", i), address)
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Detach()
			all = append(all, c)
		}
		writer, data, n := all[stuck], make([]byte, 100_000), 0
		create := func() error {
			n++
			_, _, err := writer.Create(t.Context(), fmt.Sprint("/", n), data, client.CreateOptions{})
			return err
		}
		for create() == nil {
			time.Sleep(time.Second)
			if n > 100 {
				t.Fatal("the clients leave more room than they should")
			}
		}
		time.Sleep(10 * time.Second)
		if err := create(); !errors.Is(err, proto.ErrQuotaExceeded) {
			t.Fatalf("create %d beside all clients: %v", n, err)
		}
		reachable.Store(true)
		begun := time.Now()
		for accepted := 0; accepted < 12; time.Sleep(100 * time.Millisecond) {
			switch err := create(); {
			case err == nil:
				accepted++
			case !errors.Is(err, proto.ErrQuotaExceeded):
				t.Fatalf("a client that sends requests: %v", err)
			case time.Since(begun) > 10*time.Minute:
				t.Fatalf("the state is still full after %d more creates: %v", accepted, err)
			}
		}
		for i, c := range all {
			if c.State() != client.Connected || i < stuck && dials[i].Load() > 3 {
				t.Errorf("client %d is %v after %d connections: %v", i, c.State(), dials[i].Load(), c.Err())
			}
		}
	})
}
