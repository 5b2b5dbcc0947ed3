package lockload

import (
	"errors"
	"fmt"
	"io"
	"log"
	"strconv"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/internal/testkit/must"
)

const (
	goLockers      = 4
	sessionTimeout = 10 * time.Second
	lockPath       = "/upgrade-lock"
	counterPath    = "/upgrade-counter"
	livePath       = "/upgrade-live"
	sequencePath   = "/upgrade-sequence"
)

// locker is a client with go-zookeeper that counts under a lock and has an ephemeral.
type locker struct {
	l       *Load
	name    string
	conn    *zk.Conn
	session int64
	number  string // of its last sequential znode
}

// startGo starts lockers.
func (l *Load) startGo(addrs []string) {
	for i := range goLockers {
		w := &locker{l: l, name: fmt.Sprintf("go-zookeeper %d", i+1)}
		w.conn, _ = must.Get2(zk.Connect(addrs, sessionTimeout, zk.WithLogger(log.New(io.Discard, "", 0)), zk.WithEventCallback(func(e zk.Event) {
			if e.State == zk.StateExpired {
				l.lost(w.name)
			}
		})))
		if err := must.Try(w.prepare); err != nil {
			w.conn.Close()
			must.Do(err)
		}
		l.running.Go(w.run) // ends with End, which waits for it
	}
}

// insist repeats a request until its connection does not fail, and returns its result.
func (w *locker) insist(request func() error) error {
	for {
		err := request()
		if !errors.Is(err, zk.ErrConnectionClosed) && !errors.Is(err, zk.ErrNoServer) {
			return err
		}
		w.l.repeats()
		time.Sleep(10 * time.Millisecond) // zk waits by itself for a connection
	}
}

func (w *locker) prepare() {
	for _, path := range []string{lockPath, counterPath, livePath, sequencePath} {
		w.create(path, "0", 0)
	}
	w.create(w.ephemeral(), "", zk.FlagEphemeral)
	w.session = w.conn.SessionID()
}

func (w *locker) ephemeral() string { return livePath + "/" + strings.ReplaceAll(w.name, " ", "-") }

func (w *locker) create(path, data string, flags int32) {
	err := w.insist(func() error {
		_, err := w.conn.Create(path, []byte(data), flags, zk.WorldACL(zk.PermAll))
		return err
	})
	if !errors.Is(err, zk.ErrNodeExists) {
		must.Do(err)
	}
}

func (w *locker) run() {
	defer w.conn.Close()
	for w.l.working.Err() == nil {
		if err := must.Try(w.count); err != nil {
			w.l.fails(w.name, err.Error())
			time.Sleep(100 * time.Millisecond) // not a thousand times a second
			continue
		}
		w.l.did()
	}
	err := w.insist(func() error {
		_, stat, err := w.conn.Exists(w.ephemeral())
		if err == nil && (stat == nil || stat.EphemeralOwner != w.session) {
			return fmt.Errorf("its ephemeral is gone: %+v", stat)
		}
		return err
	})
	if err != nil {
		w.l.fails(w.name, err.Error())
	}
}

// count adds 1 to the counter under the lock.
func (w *locker) count() {
	lock := zk.NewLock(w.conn, lockPath, zk.WorldACL(zk.PermAll))
	must.Doing("lock", func() {
		must.Do(w.insist(func() error {
			err := lock.Lock()
			if err != nil { // the lock forgets its znode, which would block everybody
				return errors.Join(err, w.leaveQueue())
			}
			return nil
		}))
	})
	defer must.Finally(func() error {
		err := w.insist(func() error {
			if err := lock.Unlock(); !errors.Is(err, zk.ErrNoNode) && !errors.Is(err, zk.ErrNotLocked) {
				return err
			}
			return nil // a request that failed with its connection had been executed
		})
		if err != nil {
			return fmt.Errorf("unlock: %w", err)
		}
		return nil
	})
	w.increment()
	w.advance()
}

// advance creates and deletes a sequential znode, whose number must be above the last.
func (w *locker) advance() {
	must.Do(w.insist(func() error {
		path, err := w.conn.Create(sequencePath+"/n-", nil, zk.FlagSequence|zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
		switch {
		case err != nil:
			return fmt.Errorf("create a sequential znode: %w", err)
		case path <= w.number:
			return fmt.Errorf("sequential znode %s comes after %s", path, w.number)
		}
		w.number = path
		return nil
	}))
	must.Do(w.insist(func() error {
		if err := w.conn.Delete(w.number, -1); !errors.Is(err, zk.ErrNoNode) {
			return err
		}
		return nil // a request that failed with its connection had been executed
	}))
}

// increment changes the counter with its version: only the lock's holder may do that. If the
// connection fails, the counter's value tells whether the change took effect.
func (w *locker) increment() {
	read := func() (n int, version int32, err error) {
		err = w.insist(func() error {
			if _, err := w.conn.Sync(counterPath); err != nil {
				return err
			}
			data, stat, err := w.conn.Get(counterPath)
			if err != nil {
				return err
			}
			version = stat.Version
			n, err = strconv.Atoi(string(data))
			return err
		})
		return n, version, err
	}
	before, version, err := read()
	if err != nil {
		must.Failf("read the counter: %w", err)
	}
	tried := false
	must.Do(w.insist(func() error {
		if tried {
			now, _, err := read()
			switch {
			case err != nil || now == before+1:
				return err
			case now != before:
				return fmt.Errorf("the counter went from %d to %d under a lock", before, now)
			}
		}
		tried = true
		if _, err := w.conn.Set(counterPath, fmt.Append(nil, before+1), version); err != nil {
			return fmt.Errorf("set the counter: %w", err)
		}
		return nil
	}))
}

// leaveQueue removes the znodes of this client from the lock's queue.
func (w *locker) leaveQueue() error {
	return w.insist(func() error {
		children, _, err := w.conn.Children(lockPath)
		if err != nil {
			return err
		}
		for _, name := range children {
			_, stat, err := w.conn.Get(lockPath + "/" + name)
			switch {
			case errors.Is(err, zk.ErrNoNode):
				continue
			case err != nil:
				return err
			}
			if stat.EphemeralOwner != w.session {
				continue
			}
			if err := w.conn.Delete(lockPath+"/"+name, -1); err != nil && !errors.Is(err, zk.ErrNoNode) {
				return err
			}
		}
		return nil
	})
}
