package examples

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/zktest"
)

// The member that leads the ensemble dies. That is no reason for the program that was elected to
// step down, nor for another to take over: its session lives on. When the session ends, the next
// one takes over.
//
// In a bubble such a sleep takes next to no time, and what was going to happen in it has happened.
func TestElection_SurvivesTheLeader(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := zktest.StartEnsemble(t, 3)
		e.Load(map[string]string{"/election": ""})
		elected := &record{}
		candidates := make(map[string]*zk.Conn)
		var campaigns sync.WaitGroup
		t.Cleanup(campaigns.Wait) // t.Context has ended by then
		for i, name := range []string{"anna", "bert", "carl"} {
			conn := e.Connect(t)
			candidates[name] = conn
			campaigns.Go(func() {
				if err := campaign(t.Context(), conn, "/election", name, elected.add); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			})
			e.Await("/election", func(tree map[string]string) bool { return len(tree) == 2+i }) // in this order
		}
		time.Sleep(2 * zktest.DefaultSessionTimeout)
		elected.want(t, "anna")

		leader := e.Leader()
		leader.Kill()
		e.Leader() // the others have a new one
		for _, conn := range candidates {
			e.MemberOf(conn) // has found a member that lives
		}
		time.Sleep(2 * zktest.DefaultSessionTimeout)
		elected.want(t, "anna")
		leader.Start()
		time.Sleep(2 * zktest.DefaultSessionTimeout)
		elected.want(t, "anna")

		e.ExpireSession(candidates["anna"].SessionID())
		time.Sleep(2 * zktest.DefaultSessionTimeout)
		elected.want(t, "anna", "bert")
	})
}

// campaign takes part in an election: it calls won when this candidate is elected, and returns when
// its session or ctx has ended; conn must not be closed before. Every candidate has an ephemeral
// znode; the one with the lowest number is elected, and each of the others watches the one before
// it.
func campaign(ctx context.Context, conn *zk.Conn, root, name string, won func(name string)) error {
	mine, err := conn.CreateProtectedEphemeralSequential(root+"/candidate-", []byte(name), zk.WorldACL(zk.PermAll))
	if err != nil {
		return fmt.Errorf("take part: %w", err)
	}
	elected := false
	for ctx.Err() == nil {
		watched, changed, err := watchNext(conn, root, path.Base(mine))
		switch {
		case errors.Is(err, zk.ErrSessionExpired), errors.Is(err, errOut):
			return nil
		case errors.Is(err, zk.ErrNoAuth):
			return err
		case err != nil:
			continue // the connection was lost, or the one before has left: ask again
		case watched == mine && !elected:
			elected = true
			won(name)
		}
		select {
		case <-changed: // or the session has ended: asking again tells
		case <-ctx.Done():
		}
	}
	return nil
}

var errOut = errors.New("this candidate's znode is gone")

// watchNext watches the candidate before mine, or mine if there is none.
func watchNext(conn *zk.Conn, root, mine string) (watched string, changed <-chan zk.Event, err error) {
	names, _, err := conn.Children(root)
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return "", nil, errOut
	case err != nil:
		return "", nil, err
	}
	slices.SortFunc(names, func(a, b string) int { return strings.Compare(number(a), number(b)) })
	i := slices.Index(names, mine)
	if i < 0 {
		return "", nil, errOut
	}
	watched = root + "/" + names[max(i-1, 0)]
	_, _, changed, err = conn.GetW(watched)
	return watched, changed, err
}

// number is what the server has put at the end of a name.
func number(name string) string { return name[strings.LastIndexByte(name, '-')+1:] }

// record is who was elected, in order.
type record struct {
	mu    sync.Mutex
	names []string
}

func (r *record) add(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.names = append(r.names, name)
}

func (r *record) want(t *testing.T, names ...string) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Equal(r.names, names) {
		t.Fatalf("elected were %q, want %q", r.names, names)
	}
}
