package examples

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/zktest"
)

var errTaken = errors.New("the name is taken")

// register makes an ephemeral znode of this session, whatever happens meanwhile. It returns
// errTaken if another session has it.
func register(ctx context.Context, conn *zk.Conn, path string) error {
	for ctx.Err() == nil {
		_, err := conn.Create(path, nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
		switch {
		case errors.Is(err, zk.ErrNodeExists): // perhaps by what we asked for before, and did not hear of
			exists, stat, err := conn.Exists(path)
			switch {
			case err == nil && exists && stat.EphemeralOwner == conn.SessionID():
				return nil
			case err == nil && exists:
				return errTaken
			}
		case errors.Is(err, zk.ErrNoAuth), errors.Is(err, zk.ErrNoNode), err == nil:
			return err
		}
		// Connection lost, session expired, server busy: nobody knows what was done, so try again.
	}
	return ctx.Err()
}

func TestRegister(t *testing.T) {
	t.Parallel()
	ensemble := zktest.StartEnsemble(t, 3)
	ensemble.LoadTxtar(`
-- /workers --
-- /config/color --
green
`)
	clean := ensemble.Snapshot()

	for _, c := range []struct {
		name string
		fail func(t *testing.T, e *zktest.Ensemble, conn *zk.Conn)
		want error
	}{
		{"nothing", func(*testing.T, *zktest.Ensemble, *zk.Conn) {}, nil},
		{"taken", func(t *testing.T, e *zktest.Ensemble, _ *zk.Conn) {
			if err := register(t.Context(), e.Connect(t), "/workers/anna"); err != nil {
				t.Fatal(err)
			}
		}, errTaken},
		{"reply lost", func(_ *testing.T, e *zktest.Ensemble, _ *zk.Conn) {
			e.DropReply(zktest.Create)
		}, nil},
		{"replies lost again and again", func(_ *testing.T, e *zktest.Ensemble, _ *zk.Conn) {
			e.DropReply(zktest.Create, zktest.Times(3))
			e.DropReply(zktest.Exists, zktest.Times(3))
		}, nil},
		{"not allowed", func(_ *testing.T, e *zktest.Ensemble, _ *zk.Conn) {
			e.FailNext(zktest.Create, proto.ErrNoAuth, zktest.OnPath("/workers"))
		}, zk.ErrNoAuth},
		{"no parent", func(_ *testing.T, e *zktest.Ensemble, _ *zk.Conn) {
			e.FailNext(zktest.Create, proto.ErrNoNode)
		}, zk.ErrNoNode},
		{"timeout within the ensemble", func(_ *testing.T, e *zktest.Ensemble, _ *zk.Conn) {
			e.FailNext(zktest.Create, proto.ErrOperationTimeout, zktest.Times(2))
		}, nil},
		{"slow", func(_ *testing.T, e *zktest.Ensemble, _ *zk.Conn) {
			e.Delay(zktest.Create, 20*time.Millisecond)
		}, nil},
		{"connection closed", func(_ *testing.T, e *zktest.Ensemble, conn *zk.Conn) {
			e.CloseConnection(conn.SessionID())
		}, nil},
		{"session expired", func(_ *testing.T, e *zktest.Ensemble, conn *zk.Conn) {
			e.ExpireSession(conn.SessionID())
		}, nil},
		{"member restarted", func(_ *testing.T, e *zktest.Ensemble, conn *zk.Conn) {
			e.MemberOf(conn).Restart()
		}, nil},
		{"leader killed", func(t *testing.T, e *zktest.Ensemble, _ *zk.Conn) {
			leader := e.Leader()
			leader.Kill()
			t.Cleanup(leader.Start)
		}, nil},
		{"leader paused", func(t *testing.T, e *zktest.Ensemble, _ *zk.Conn) {
			leader := e.Leader()
			leader.Pause()
			t.Cleanup(leader.Resume)
		}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := ensemble.With(t) // what can't be done fails this subtest
			t.Cleanup(func() {
				e.ClearFaults()
				e.Rewind(clean)
			})
			conn := e.Followers()[0].ConnectTo(t)
			c.fail(t, e, conn)
			if err := register(t.Context(), conn, "/workers/anna"); !errors.Is(err, c.want) {
				t.Fatalf("register: %v, want %v", err, c.want)
			}
			switch {
			case c.want == nil:
				e.AssertOwner("/workers/anna", conn.SessionID())
			case errors.Is(c.want, errTaken):
				e.AssertExists("/workers/anna")
			default:
				e.AssertMissing("/workers/anna")
			}
		})
	}
}
