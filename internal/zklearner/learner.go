package zklearner

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"github.com/gozkd/gozkd/internal/neterr"
	"github.com/gozkd/gozkd/proto"
)

// Config configures a Learner.
type Config struct {
	// Servers are the voters' host:port for servers, such as zk1:2888. Only the leader listens.
	Servers []string
	// Timeout is how long the leader may send nothing; it sends a ping each half tick. Default: 30
	// s. Its first packet must come within neterr.FirstAnswer.
	Timeout time.Duration
	// Retry is the pause between two rounds through Servers. Default: 200 ms.
	Retry time.Duration
	// Look finds out what a port is for that no leader answers at; "" if that is not known. Run
	// calls it once for each server. Default: it is not known.
	Look func(ctx context.Context, address string) neterr.WrongPort
	// Changed is called when a leader has confirmed its state, and when that connection ends.
	Changed func(Status)
}

// ErrNotAsked is the reason why there is no leader at first.
var ErrNotAsked = errors.New("not all servers have been asked yet")

// Learner follows an ensemble. Run owns the replica; Status may be called from any goroutine.
type Learner struct {
	cfg     Config
	replica *Replica
	do      chan func(*Replica) error
	looked  map[string]neterr.WrongPort // the results of Config.Look, for Run

	mu     sync.Mutex // guards status
	status Status
}

// Status describes a Learner.
type Status struct {
	// Leader is the address of the leader that is followed, and "" while there is none. Why says
	// what was wrong with each server then.
	Leader  string
	Why     error
	Leaders int // how many leaders have confirmed their state, again after a reconnect
	Trees   int // how often the whole state was received
	// Zxid is the last transaction that was applied, and Announced the last that the leader named.
	Zxid, Announced              proto.Zxid
	Records, Compared            int64
	EqualUpTo                    proto.Zxid
	Znodes, Ephemerals, Sessions int
	Ensemble                     Ensemble // empty before 3.5
}

// Lag returns how many transactions of the leader's epoch the replica lacks, as far as is known.
func (s *Status) Lag() int64 {
	if s.Announced.Epoch() != s.Zxid.Epoch() {
		return int64(s.Announced.Counter())
	}
	return max(int64(s.Announced-s.Zxid), 0)
}

// New returns a Learner, which does nothing until Run.
func New(cfg Config) *Learner {
	cfg.Timeout = cmp.Or(cfg.Timeout, 30*time.Second)
	cfg.Retry = cmp.Or(cfg.Retry, 200*time.Millisecond)
	if cfg.Changed == nil {
		cfg.Changed = func(Status) {}
	}
	return &Learner{
		cfg: cfg, replica: newReplica(), do: make(chan func(*Replica) error), looked: make(map[string]neterr.WrongPort),
		status: Status{Why: ErrNotAsked},
	}
}

// Status returns the current status.
func (l *Learner) Status() Status {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.status
}

// Run follows the leader, and looks for the next leader when it is gone, until ctx ends or the
// replica differs from the source. It must be called once.
func (l *Learner) Run(ctx context.Context) error {
	retry := time.NewTimer(0)
	defer retry.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case f := <-l.do:
			if err := f(l.replica); errors.Is(err, ErrDiffers) {
				return err
			}
			l.publish(0)
			continue
		case <-retry.C:
		}
		var all []error
		for _, addr := range l.cfg.Servers {
			err := l.follow(ctx, addr)
			if errors.Is(err, ErrDiffers) {
				return err
			}
			all = append(all, fmt.Errorf("%s: %w", addr, err))
		}
		l.update(func(s *Status) { s.Why = errors.Join(all...) })
		retry.Reset(l.cfg.Retry)
	}
}

// look is Config.Look, once for each server.
func (l *Learner) look(ctx context.Context, addr string) neterr.WrongPort {
	found, looked := l.looked[addr]
	if !looked && ctx.Err() == nil && l.cfg.Look != nil {
		found = l.cfg.Look(ctx, addr)
		l.looked[addr] = found
	}
	return found
}

// Do has Run call f with the replica while no leader is followed, and returns the result of f. No
// connection is made before f returns. Run ends if the result wraps ErrDiffers.
func (l *Learner) Do(ctx context.Context, f func(*Replica) error) error {
	done := make(chan error, 1)
	select {
	case l.do <- func(r *Replica) error {
		err := f(r)
		done <- err
		return err
	}:
		return <-done
	case <-ctx.Done():
		return ctx.Err()
	}
}

// follow follows a server until the connection ends.
func (l *Learner) follow(ctx context.Context, addr string) error {
	answering, cancel := context.WithTimeoutCause(ctx, neterr.FirstAnswer, neterr.NoAnswer(neterr.FirstAnswer))
	defer cancel()
	c, err := new(net.Dialer).DialContext(answering, "tcp", addr)
	if err != nil {
		return neterr.Ended(answering, err)
	}
	defer context.AfterFunc(ctx, func() { _ = c.Close() })() // ends a read
	defer func() { _ = c.Close() }()                         // the reason for the end is returned
	timed := &timedConn{c, min(neterr.FirstAnswer, l.cfg.Timeout), l.cfg.Timeout}
	l.update(func(s *Status) { s.Announced = 0 })
	s := session{
		replica: l.replica, in: bufio.NewReaderSize(timed, chunk), out: timed, publish: l.publish,
		ensemble:  func(e Ensemble) { l.update(func(s *Status) { s.Ensemble = e }) },
		confirmed: func() { l.confirmed(addr) }, look: func() neterr.WrongPort { return l.look(ctx, addr) },
	}
	err = s.run()
	if was := l.Status(); was.Leader != "" {
		l.update(func(s *Status) { s.Leader, s.Why = "", fmt.Errorf("%s: %w", addr, err) })
		l.cfg.Changed(l.Status())
	}
	l.publish(0)
	return err
}

func (l *Learner) confirmed(addr string) {
	l.publish(0)
	l.update(func(s *Status) {
		s.Leader, s.Why = addr, nil
		s.Leaders++
	})
	l.cfg.Changed(l.Status())
}

// publish copies the progress of the replica into the status.
func (l *Learner) publish(announced proto.Zxid) {
	r := l.replica
	t := r.Tree()
	l.update(func(s *Status) {
		s.Zxid, s.Announced = r.last, max(s.Announced, announced, r.last)
		s.Trees, s.Records, s.Compared, s.EqualUpTo = r.trees, r.records, r.compared, r.equalUpTo
		s.Znodes, s.Ephemerals, s.Sessions = t.NumZnodes(), t.NumEphemerals(), t.NumSessions()
	})
}

func (l *Learner) update(f func(*Status)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f(&l.status)
}

// timedConn bounds how long a read or write may make no progress.
type timedConn struct {
	net.Conn
	silence time.Duration // bounds the next read: timeout after the first
	timeout time.Duration
}

func (c *timedConn) Read(b []byte) (int, error) {
	if err := c.SetReadDeadline(time.Now().Add(c.silence)); err != nil {
		return 0, err
	}
	n, err := c.Conn.Read(b)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = neterr.NoAnswer(c.silence)
	}
	c.silence = c.timeout
	return n, err
}

func (c *timedConn) Write(b []byte) (int, error) {
	if err := c.SetWriteDeadline(time.Now().Add(c.timeout)); err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}
