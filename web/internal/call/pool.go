package call

import (
	"context"
	"errors"
	"net"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/internal/fair"
	"github.com/gozkd/gozkd/internal/history"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/web/internal/access"
	"github.com/gozkd/gozkd/web/internal/answer"
)

const (
	maxSessions    = 128
	maxInUseEach   = 64 // sessions of an identity, for several addresses, that are in use
	idleTime       = 5 * time.Minute
	sweepEvery     = 10 * time.Second
	sessionTimeout = 30 * time.Second
	connectTimeout = 5 * time.Second
	maxLargeEach   = 16 // large answers of a caller that are being written
	maxLarge       = 64
)

// PoolConfig configures a Pool.
type PoolConfig struct {
	// Dial connects to the server as a caller.
	Dial func(ctx context.Context, who *access.Caller) (net.Conn, error)
	// Missed is server.Server.Missed.
	Missed func(
		who *access.Caller, q *proto.SetWatchesRequest, f func(proto.Zxid, proto.EventType, string),
	) (upTo proto.Zxid, ok bool)
	// NotServing returns a Problem while the server does not answer clients.
	NotServing func() error
	// MaxRequest is the largest request that the server takes. Sessions refuse larger ones:
	// otherwise the server would close the connection that callers with the same identities share.
	MaxRequest int
	// MaxBody bounds the bodies of requests in bytes.
	MaxBody int64
	// History has earlier states of znodes. nil: there is no archive.
	History history.Archive
	Logger  hclog.Logger
}

// Pool holds a client session per identity, within the process, and the streams of events that
// callers with that identity share. Its methods may be called from any goroutine.
type Pool struct {
	PoolConfig

	closing sync.WaitGroup // sessions that are being closed
	kept    atomic.Int64   // bytes of events in all rings
	heavy   chan struct{}  // has an element for each Heavy that runs
	large   *fair.Gauge    // large answers that are being written

	mu       sync.Mutex // guards the fields below, and refs and used of sessions
	sessions map[string]*Session
	sweep    *time.Timer
	over     bool
}

// Session is a client session that callers with the same identities share. Release must be called.
type Session struct {
	pool    *Pool
	key     string
	who     access.Caller
	ready   chan struct{} // closed when Client or err is set
	Client  *client.Client
	err     error
	streams streams

	refs int
	used time.Time
}

// NewPool returns an empty Pool, which Close must close.
func NewPool(c PoolConfig) *Pool {
	p := &Pool{PoolConfig: c, sessions: make(map[string]*Session)}
	p.heavy, p.large = make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2)), fair.NewGauge(maxLargeEach, maxLarge)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sweep = time.AfterFunc(sweepEvery, p.Sweep) // until Close
	return p
}

// Sweep closes sessions that nobody has used for a while, now and regularly.
func (p *Pool) Sweep() {
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		return
	}
	p.sweep.Reset(sweepEvery)
	for _, s := range p.sessions {
		if s.refs == 0 && now.Sub(s.used) >= idleTime {
			p.removeLocked(s)
		}
	}
}

// Get returns the session of a caller, which it opens if there is none.
func (p *Pool) Get(ctx context.Context, who *access.Caller) (*Session, error) {
	if err := p.NotServing(); err != nil {
		return nil, err
	}
	s, err := p.take(who)
	if err != nil {
		return nil, err
	}
	select {
	case <-s.ready:
	case <-ctx.Done():
		s.Release()
		return nil, ctx.Err()
	}
	if s.err != nil {
		s.Release()
		return nil, s.err
	}
	return s, nil
}

// take returns the session of a caller, which may not be ready yet.
func (p *Pool) take(who *access.Caller) (*Session, error) {
	key := who.Key()
	if who.TLS { // the audit log has it for each request
		key += "\x00tls"
	}
	if who.Page {
		key += "\x00page"
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		return nil, answer.Errorf(http.StatusServiceUnavailable, "the server is being stopped")
	}
	if s := p.sessions[key]; s != nil {
		if !s.ended() {
			s.refs++
			return s, nil
		}
		p.removeLocked(s)
	}
	if p.inUseLocked(who.Account()) >= maxInUseEach {
		return nil, answer.Busy(1, "requests of this user from %d addresses are being answered: close others", maxInUseEach)
	}
	if len(p.sessions) >= maxSessions && !p.evictLocked() {
		return nil, answer.Errorf(http.StatusServiceUnavailable, "requests of %d users are being answered: try again later", maxSessions)
	}
	s := &Session{pool: p, key: key, who: *who, ready: make(chan struct{}), refs: 1, used: time.Now()}
	s.streams.session, s.streams.rings = s, make(map[Watch]*ring)
	p.sessions[key] = s
	// Ends after connectTimeout at the latest; Close waits for it.
	p.closing.Go(s.connect)
	return s, nil
}

// ended reports whether the session cannot be used any more.
func (s *Session) ended() bool {
	select {
	case <-s.ready:
		return s.err != nil || s.Client.Err() != nil
	default:
		return false
	}
}

func (s *Session) connect() {
	defer close(s.ready)
	ctx, cancel := context.WithTimeout(context.Background(), connectTimeout)
	defer cancel()
	s.Client, s.err = s.pool.Connect(ctx, &s.who, s.streams.on)
	if s.err == nil {
		// The event of the first connection must not reset streams; a late one does no harm.
		_ = s.Client.AwaitEvents(ctx)
	}
}

// Connect opens a client session with the identities of a caller, which the Pool does not keep.
func (p *Pool) Connect(ctx context.Context, who *access.Caller, on func(client.Event)) (*client.Client, error) {
	if err := p.NotServing(); err != nil {
		return nil, err
	}
	as := *who
	return client.Connect(ctx, client.Config{
		Servers:        []string{"127.0.0.1:2181"}, // Dial does not look at it
		Dial:           func(ctx context.Context, _ string) (net.Conn, error) { return p.Dial(ctx, &as) },
		SessionTimeout: sessionTimeout, ConnectTimeout: connectTimeout, ReadOnly: true, MaxRequest: p.MaxRequest, OnEvent: on,
		Logger: struct{ client.Logger }{p.Logger}, // debug only: the server says why it closes connections
	})
}

// inUseLocked returns how many sessions of an account are in use: an account has one for each of
// its addresses, and must not take those of all others. p.mu is held.
func (p *Pool) inUseLocked(account string) (n int) {
	for _, s := range p.sessions {
		if s.who.Account() == account && s.refs > 0 {
			n++
		}
	}
	return n
}

// evictLocked closes the idlest session. p.mu is held.
func (p *Pool) evictLocked() bool {
	var idlest *Session
	for _, s := range p.sessions {
		if s.refs == 0 && (idlest == nil || s.used.Before(idlest.used)) {
			idlest = s
		}
	}
	if idlest == nil {
		return false
	}
	p.removeLocked(idlest)
	return true
}

// removeLocked forgets a session, and closes it. p.mu is held.
func (p *Pool) removeLocked(s *Session) {
	delete(p.sessions, s.key)
	// Ends when the session is closed, after twice connectTimeout at the latest; Close waits.
	p.closing.Go(func() {
		<-s.ready
		s.streams.close()
		if s.Client == nil {
			return
		}
		if err := s.Client.Close(); err != nil && !errors.Is(err, client.ErrClosed) {
			p.Logger.Debug("a session of the web interface was not closed", "error", err)
		}
	})
}

// Release gives the session back.
func (s *Session) Release() {
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	s.refs--
	s.used = time.Now()
}

// Len returns how many sessions are open.
func (p *Pool) Len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.sessions)
}

// Close closes all sessions, also those that are in use.
func (p *Pool) Close() {
	p.mu.Lock()
	p.over = true
	p.sweep.Stop()
	for _, s := range p.sessions {
		p.removeLocked(s)
	}
	p.mu.Unlock()
	p.closing.Wait()
}
