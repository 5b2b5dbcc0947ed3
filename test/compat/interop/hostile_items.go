package interop

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/internal/testkit/must"
)

// counting is the load of a counter: a worker per seat adds one.
type counting struct {
	s     *siege
	title string
	seats []*seat

	mu      sync.Mutex // guards the fields below
	reached map[string]string
	unknown int
	done    tally
}

func (l *counting) name() string { return l.title }

func (l *counting) path() string { return fmt.Sprintf("/hostile-count-%d", len(l.seats)) }

func (l *counting) prepare(context.Context) {
	l.reached = make(map[string]string)
	must.Get(l.s.conn.Create(l.path(), make([]byte, 8), 0, zk.WorldACL(zk.PermAll)))
}

func (l *counting) works(ctx context.Context) (works []func()) {
	for _, at := range l.seats {
		open := func(h *handle) bool {
			_, ok := l.s.ask(ctx, at, h, "count", "long", l.path())
			return ok
		}
		works = append(works, func() {
			l.s.worker(ctx, at, open, func(h *handle) bool {
				l.s.rest(ctx, 100*time.Millisecond) // without a rest, kazoo loses every race
				a, ok := l.s.ask(ctx, at, h, "add", 1)
				l.record(at, a, ok)
				return ok
			})
		})
	}
	return works
}

func (l *counting) record(at *seat, a *answer, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !ok {
		l.unknown++
		return
	}
	l.done.add(at.lang())
	if other, twice := l.reached[a.words[0]]; twice {
		l.s.find("%s: %s and %s both counted to %s", l.title, other, at.name, a.words[0])
	}
	l.reached[a.words[0]] = at.name
}

func (l *counting) lacks() []string { return l.done.without("add", l.seats) }

func (l *counting) check(ctx context.Context) string {
	data := settled(ctx, "read "+l.path(), func() ([]byte, error) {
		b, _, err := l.s.conn.Get(l.path())
		return b, err
	})
	sum := 0
	for _, b := range data {
		sum = sum<<8 | int(b)
	}
	losses := 0
	if len(languagesOf(l.seats)) > 1 {
		losses = l.s.losses(ctx)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	acked := len(l.reached)
	if sum < acked || sum > acked+l.unknown+losses {
		l.s.find("%s: %d after %d acknowledged adds, %d unknown ones and %d lost connections of others", l.title, sum, acked, l.unknown, losses)
	}
	return fmt.Sprintf("%d, acknowledged %d (%s), unknown %d, lost connections of others %d", sum, acked, &l.done, l.unknown, losses)
}

// queueing is the load of a queue: a producer and a consumer per seat.
type queueing struct {
	s     *siege
	title string
	seats []*seat

	mu      sync.Mutex // guards the fields below
	puts    map[string]putRecord
	takes   map[string]int
	unknown int       // takes without an answer
	last    time.Time // when an item was taken or may have been
	added   tally     // acknowledged puts, by language
	done    tally     // items taken, by language
	n       int       // the number of the last item
}

// putRecord is a put: by whom, and whether it was acknowledged.
type putRecord struct {
	lang  string
	acked bool
}

func newQueueing(s *siege, title string, seats []*seat) *queueing {
	return &queueing{s: s, title: title, seats: seats, puts: make(map[string]putRecord), takes: make(map[string]int)}
}

func (l *queueing) name() string { return l.title }

func (l *queueing) path() string { return fmt.Sprintf("/hostile-queue-%d", len(l.seats)) }

func (l *queueing) prepare(context.Context) {
	must.Get(l.s.conn.Create(l.path(), nil, 0, zk.WorldACL(zk.PermAll)))
}

const (
	queueKind = "queue"
	backlog   = 50          // the number of items above which producers wait
	idleTime  = time.Second // how long a consumer waits for an item
)

func (l *queueing) works(ctx context.Context) (works []func()) {
	for _, at := range l.seats {
		works = append(works,
			func() { l.s.worker(ctx, at, nil, func(h *handle) bool { return l.put(ctx, at, h) }) },
			func() { l.consume(ctx, at) })
	}
	return works
}

func (l *queueing) put(ctx context.Context, at *seat, h *handle) bool {
	l.s.rest(ctx, 20*time.Millisecond)
	l.mu.Lock()
	full := len(l.puts)-len(l.takes) > backlog+l.unknown
	l.n++
	item := at.name + "/" + strconv.Itoa(l.n)
	if !full {
		l.puts[item] = putRecord{at.lang(), false}
	}
	l.mu.Unlock()
	if full {
		l.s.rest(ctx, 100*time.Millisecond)
		return true
	}
	_, ok := l.s.ask(ctx, at, h, "put", queueKind, l.path(), Hex([]byte(item)))
	if ok {
		l.mu.Lock()
		l.puts[item] = putRecord{at.lang(), true}
		l.mu.Unlock()
		l.added.add(at.lang())
	}
	return ok
}

// consume takes until, for a while after the end of all workers, nothing was taken. Until then a
// peer may be stopped, which then puts an item or gives one back when it runs again.
func (l *queueing) consume(ctx context.Context, at *seat) {
	var h *handle
	for ctx.Err() == nil && !l.drained() {
		if h == nil {
			h = at.get().handle()
			if _, ok := l.s.ask(ctx, at, h, "consume", queueKind, l.path()); !ok {
				h = nil
				l.s.rest(ctx, 100*time.Millisecond)
				continue
			}
		}
		args := []any{idleTime.Milliseconds()}
		if at.lang() == Go {
			args = append(args, "strict")
		}
		a, ok := l.s.ask(ctx, at, h, "take", args...)
		l.mu.Lock()
		switch {
		case !ok:
			l.last = time.Now() // an item may be given back
			l.unknown++
			h = nil
		case a.words[0] != "none":
			l.last = time.Now()
			l.done.add(at.lang())
			l.takes[string(Unhex(a.words[0]))]++
		}
		l.mu.Unlock()
	}
}

func (l *queueing) drained() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.s.quiet() > 5*idleTime && time.Since(l.last) > 5*idleTime
}

// left describes the items that are in the queue.
func (l *queueing) left(ctx context.Context) (items []string) {
	settled(ctx, "sync "+l.path(), func() (string, error) { return l.s.conn.Sync(l.path()) })
	names := settled(ctx, "list "+l.path(), func() ([]string, error) {
		names, _, err := l.s.conn.Children(l.path())
		return names, err
	})
	for _, name := range names {
		items = append(items, settled(ctx, "read "+name, func() (string, error) {
			data, stat, err := l.s.conn.Get(l.path() + "/" + name)
			if err != nil {
				return name, err
			}
			return fmt.Sprintf("%s, put %v ago: %q", name, time.Since(time.UnixMilli(stat.Ctime)).Round(time.Millisecond), data), nil
		}))
	}
	return items
}

// lacks does not ask for takes of each language: kazoo loses races for the first item.
func (l *queueing) lacks() []string { return l.added.without("acknowledged put", l.seats) }

func (l *queueing) check(ctx context.Context) string {
	left := l.left(ctx)
	losses := 0
	if len(languagesOf(l.seats)) > 1 {
		losses = l.s.losses(ctx)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	acked, missing, repeated := 0, 0, 0
	for item, p := range l.puts {
		n := l.takes[item]
		switch {
		case n > 1 && p.lang == Go:
			l.s.find("%s: %s was put once and taken %d times", l.title, item, n)
		case n > 1:
			repeated += n - 1
		}
		if p.acked {
			acked++
			if n == 0 {
				missing++
			}
		}
	}
	for item := range l.takes {
		if _, ok := l.puts[item]; !ok {
			l.s.find("%s: %s was taken and never put", l.title, item)
		}
	}
	// An item that is left is one that was missed.
	if missing > l.unknown+losses+len(left) {
		l.s.find("%s: %d items are missing; takes without an answer: %d, lost connections of others: %d, left: %d", l.title, missing, l.unknown, losses, len(left))
	}
	if repeated > losses {
		l.s.find("%s: %d items were taken again; lost connections of others: %d", l.title, repeated, losses)
	}
	for _, item := range left {
		l.s.find("%s: nobody takes %s", l.title, item)
	}
	return fmt.Sprintf("put %d (%s), taken %d (%s), missing %d, taken again %d, takes without an answer %d, lost connections of others %d",
		acked, &l.added, len(l.takes), &l.done, missing, repeated, l.unknown, losses)
}
