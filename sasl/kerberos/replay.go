package kerberos

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"sync"
	"time"
)

// maxReplays bounds the number of remembered authenticators. Only owners of tickets can make them.
const maxReplays = 1 << 20

// replays is the replay cache: it remembers accepted authenticators while they would be accepted
// again. An authenticator is valid from skew before to skew after its time, so the cache must reach
// back by twice the skew. Two maps that take turns need no timer per entry.
type replays struct {
	mu     sync.Mutex
	keep   time.Duration // twice the clock skew
	turned time.Time     // when newer was begun
	newer  map[[16]byte]bool
	older  map[[16]byte]bool
	limit  int // of newer; 0: maxReplays
}

var (
	errReplay      = errors.New("kerberos: this authenticator was used before; somebody may have recorded it")
	errReplaysFull = errors.New("kerberos: too many authentications within twice the clock skew to recognize recorded ones; see clockskew of krb5.conf")
)

// add remembers an encrypted authenticator, or returns an error if the authenticator is known.
func (r *replays) add(authenticator []byte, now time.Time) error {
	sum := sha256.Sum256(authenticator)
	id := [16]byte(sum[:16])
	r.mu.Lock()
	defer r.mu.Unlock()
	if age := now.Sub(r.turned); r.newer == nil || age >= r.keep {
		if r.older = r.newer; age >= 2*r.keep {
			r.older = nil
		}
		r.newer, r.turned = make(map[[16]byte]bool), now
	}
	if r.newer[id] || r.older[id] {
		return errReplay
	}
	if len(r.newer) >= cmp.Or(r.limit, maxReplays) {
		return errReplaysFull
	}
	r.newer[id] = true
	return nil
}
