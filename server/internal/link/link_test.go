package link

import (
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
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
	l, _ := newPipe(t)
	return l
}

// newPipe returns a link that is no socket, and its client.
func newPipe(t *testing.T) (*Link, net.Conn) {
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
	return l, there
}

// A link that ends is flushed when its client has taken the output, and not before: neither while
// another goroutine writes, which then holds the output, nor when no other goroutine does.
func TestAwaitFlushed(t *testing.T) {
	const last = "the last reply"
	for writer, flush := range map[string]func(*Link){"another": (*Link).FlushAsync, "itself": func(*Link) {}} {
		synctest.Test(t, func(t *testing.T) {
			l, client := newPipe(t)
			l.Lock()
			l.Out.Buf = append(l.Out.Buf, last...)
			l.Finish()
			l.Unlock()
			flush(l)
			synctest.Wait()
			flushed := make(chan struct{})
			go func() { // ends when the client has read; awaited below
				defer close(flushed)
				l.AwaitFlushed()
			}()
			synctest.Wait()
			select {
			case <-flushed:
				t.Fatalf("%s writes: flushed before the client has read", writer)
			default:
			}
			got := make([]byte, len(last))
			if _, err := io.ReadFull(client, got); err != nil || string(got) != last {
				t.Errorf("%s writes: the client got %q, %v", writer, got, err)
			}
			<-flushed
		})
	}
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
