package restv1

import (
	"context"
	"encoding/xml"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/internal/fair"
	"github.com/gozkd/gozkd/internal/guid"
	"github.com/gozkd/gozkd/internal/webrole"
	"github.com/gozkd/gozkd/web/internal/access"
	"github.com/gozkd/gozkd/web/internal/answer"
	"github.com/gozkd/gozkd/web/internal/call"
)

// Bounds on sessions.
const (
	maxSessions     = 512
	maxSessionsEach = 64 // of a caller
	minExpire       = 1
	maxExpire       = 3600 // seconds
)

// Sessions holds the sessions that callers have made for ephemeral znodes. A session ends when its
// caller deletes it, or sends no heartbeat for as long as agreed. Others cannot use it.
type Sessions struct {
	pool  *call.Pool
	bound *fair.Gauge

	closing sync.WaitGroup // sessions that are being closed
	mu      sync.Mutex     // guards the fields below
	byID    map[string]*session
	over    bool
}

type session struct {
	id, owner string
	client    *client.Client
	expire    time.Duration
	timer     *time.Timer
	leave     func()
}

// NewSessions returns no sessions. The pool connects them.
func NewSessions(pool *call.Pool) *Sessions {
	return &Sessions{pool: pool, bound: fair.NewGauge(maxSessionsEach, maxSessions), byID: make(map[string]*session)}
}

// Get returns the client of a caller's session, and counts as a heartbeat.
func (s *Sessions) Get(r *http.Request, id string) (*client.Client, error) {
	e, err := s.touch(&call.Of(r).Caller, id)
	if err != nil {
		return nil, err
	}
	return e.client, nil
}

// touch notes a heartbeat. To a caller with other identities a session does not exist.
func (s *Sessions) touch(who *access.Caller, id string) (*session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.byID[id]
	if e == nil || e.owner != who.Key() {
		return nil, answer.Errorf(http.StatusNotFound, "there is no session %q, or it has expired", id)
	}
	if e.client.Err() != nil {
		s.removeLocked(e)
		return nil, answer.Errorf(http.StatusNotFound, "session %s has expired", id)
	}
	e.timer.Reset(e.expire)
	return e, nil
}

func (s *Sessions) create(ctx context.Context, who *access.Caller, expire time.Duration) (*session, error) {
	leave, ok := s.bound.Enter(who.Account())
	if !ok {
		return nil, answer.Busy(10, "a caller may have %d sessions, and all callers %d: delete others", maxSessionsEach, maxSessions)
	}
	c, err := s.pool.Connect(ctx, who, nil)
	if err != nil {
		leave()
		return nil, err
	}
	e := &session{id: guid.New(), owner: who.Key(), client: c, expire: expire, leave: leave}
	s.mu.Lock()
	defer s.mu.Unlock()
	e.timer = time.AfterFunc(expire, func() { s.remove(e) })
	s.byID[e.id] = e
	if s.over {
		s.removeLocked(e)
		return nil, answer.Errorf(http.StatusServiceUnavailable, "the server is being stopped")
	}
	return e, nil
}

func (s *Sessions) remove(e *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.removeLocked(e)
}

// removeLocked closes a session. s.mu is held.
func (s *Sessions) removeLocked(e *session) {
	if s.byID[e.id] != e {
		return
	}
	delete(s.byID, e.id)
	e.timer.Stop()
	// Ends when the server has closed the session, or within its ConnectTimeout; Close waits.
	s.closing.Go(func() {
		_ = e.client.Close() // otherwise the session expires
		e.leave()
	})
}

// Close ends all sessions, and returns when they are closed.
func (s *Sessions) Close() {
	s.mu.Lock()
	s.over = true
	for _, e := range s.byID {
		s.removeLocked(e)
	}
	s.mu.Unlock()
	s.closing.Wait()
}

// Len returns how many sessions there are.
func (s *Sessions) Len() int { return s.bound.Len() }

// ServeHTTP answers /sessions/v1.
func (s *Sessions) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := s.serve(w, r); err != nil {
		fail(w, r, call.ProblemOf(err))
	}
}

func (s *Sessions) serve(w http.ResponseWriter, r *http.Request) error {
	c := call.Of(r)
	if err := c.May(webrole.Write); err != nil {
		return err
	}
	id := strings.Trim(strings.TrimPrefix(r.URL.Path, "/sessions/v1"), "/")
	switch {
	case r.Method == http.MethodPost && id == "":
		q := r.URL.Query()
		if q.Get("op") != "create" {
			return answer.Errorf(http.StatusBadRequest, "the parameter op is %q, allowed is create", q.Get("op"))
		}
		seconds, err := strconv.Atoi(q.Get("expire"))
		if err != nil || seconds < minExpire || seconds > maxExpire {
			return answer.Errorf(http.StatusBadRequest, "the parameter expire is %q, allowed are %d to %d seconds", q.Get("expire"), minExpire, maxExpire)
		}
		e, err := s.create(r.Context(), &c.Caller, time.Duration(seconds)*time.Second)
		if err != nil {
			return err
		}
		return write(w, r, http.StatusCreated, 0, struct {
			XMLName xml.Name `json:"-" xml:"session"`
			ID      string   `json:"id" xml:"id"`
			URI     string   `json:"uri" xml:"uri"`
		}{ID: e.id, URI: base(r) + "/sessions/v1/" + e.id})
	case r.Method == http.MethodPut && id != "":
		if _, err := s.touch(&c.Caller, id); err != nil {
			return err
		}
		w.WriteHeader(http.StatusOK)
	case r.Method == http.MethodDelete && id != "":
		e, err := s.touch(&c.Caller, id)
		if err != nil {
			return err
		}
		s.remove(e)
		w.WriteHeader(http.StatusNoContent)
	default:
		return notImplemented(r)
	}
	return nil
}
