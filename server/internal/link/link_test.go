package link

import (
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gozkd/gozkd/server/internal/bounds"
)

// owner has a queue of this many bytes.
type owner int64

func (o owner) Backlog() int64 { return int64(o) }
func (o owner) Resume()        {}

// newLink returns a link whose client does nothing.
func newLink(t *testing.T) *Link {
	t.Helper()
	var goroutines sync.WaitGroup
	var host Host
	host.Init(HostConfig{
		Now: time.Now, Patience: func() time.Duration { return time.Minute }, Relieve: func() {}, Writes: new(bounds.Writes), Goroutines: &goroutines,
	})
	here, there := net.Pipe()
	l := &Link{}
	l.Init(&host, owner(0), here)
	t.Cleanup(func() {
		l.Close()
		_ = there.Close()
		goroutines.Wait()
	})
	return l
}

// A step of the wall clock must not expire sessions: the times that the tracker gets have a
// monotonic reading.
func TestHeard_Monotonic(t *testing.T) {
	l := newLink(t)
	now := l.host.wall.Add(time.Minute)
	l.NoteHeard(now)
	if heard := l.LastAlive(time.Now()); !heard.Equal(now) || !strings.Contains(heard.String(), " m=") {
		t.Errorf("heard at %v, want %v with its monotonic reading", heard, now)
	}
}
