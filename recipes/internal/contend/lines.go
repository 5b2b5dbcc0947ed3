package contend

import (
	"context"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/internal/sequence"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/author"
)

// lines reads directories for the contenders of a Client. Contenders that ask while a directory is
// being read share the next reading: a thousand that join at once cause two, not a thousand that
// have a thousand names each. Safe for concurrent use.
type lines struct {
	client *recipes.Client

	mu   sync.Mutex
	next map[string]*line // by directory, while a goroutine reads that directory
}

// line is one state of a directory. Its fields are set when read is closed.
type line struct {
	asked bool // by a contender; guarded by lines.mu
	read  chan struct{}
	names []string // the sequential children, in order
	stat  *zk.Stat
	err   error
}

type linesKey struct{}

func linesOf(c *recipes.Client) *lines {
	return author.Of(c).Shared(linesKey{}, func() any {
		return &lines{client: c, next: make(map[string]*line)}
	}).(*lines)
}

// read returns a state of dir that is no older than the call. Its names must not be modified.
func (l *lines) read(ctx context.Context, dir string) (*line, error) {
	l.mu.Lock()
	next := l.next[dir]
	if next == nil {
		next = &line{read: make(chan struct{})}
		if err := author.Of(l.client).Background(ctx, func(ctx context.Context) { l.readAll(ctx, dir) }); err != nil {
			l.mu.Unlock()
			return nil, err
		}
		l.next[dir] = next
	}
	next.asked = true
	l.mu.Unlock()
	if err := Await(ctx, "children", dir, next.read); err != nil {
		return nil, err
	}
	return next, next.err
}

// readAll reads dir until nobody asks any longer.
func (l *lines) readAll(ctx context.Context, dir string) {
	for {
		l.mu.Lock()
		now := l.next[dir]
		if !now.asked {
			delete(l.next, dir)
			l.mu.Unlock()
			return
		}
		l.next[dir] = &line{read: make(chan struct{})}
		l.mu.Unlock()
		children, stat, err := l.client.Children(ctx, dir)
		now.names, now.stat, now.err = sequence.Sequential(children), stat, err
		close(now.read)
	}
}
