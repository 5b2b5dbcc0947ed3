package server_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

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
