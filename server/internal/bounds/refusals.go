package bounds

import (
	"maps"
	"sync"
	"time"

	"github.com/gozkd/gozkd/internal/fair"
)

// What refusals may cost a server. A refusal costs the bytes of its request and refusalCost, which
// is more than the work of a short request is worth: a client gains nothing by sending more often.
const (
	refusalCost     = 64 << 10
	refusalRate     = 64 << 20 // per second
	longestPause    = time.Second
	pausesInTimeout = 8 // at least so many pauses fit into the timeout of a session
	settleInterval  = 100 * time.Millisecond
)

// Refusals bounds what it costs a server to refuse requests because the state is full. A client
// that was refused is not read until its host has paid; the hosts that owe something share the rate
// in equal parts. The zero value is ready to use. Refusals is safe for concurrent use.
type Refusals struct {
	mu      sync.Mutex              // guards all
	owing   map[string]*fair.Bucket // by host
	settled time.Time               // when the hosts that owe nothing were last removed
}

// Charge charges a host for a refused request of that many bytes. It returns for how long the
// client must not be read: at most a second, and an eighth of its session's timeout. What would
// take longer to pay is not charged.
func (r *Refusals) Charge(host string, bytes int, timeout time.Duration, now time.Time) time.Duration {
	most := min(longestPause, timeout/pausesInTimeout)
	r.mu.Lock()
	defer r.mu.Unlock()
	if now.Sub(r.settled) >= settleInterval {
		r.settled = now
		share := r.share()
		maps.DeleteFunc(r.owing, func(_ string, b *fair.Bucket) bool { return b.Missing(share, now) == 0 })
	}
	its := r.owing[host]
	if its == nil {
		if its = new(fair.Bucket); r.owing == nil {
			r.owing = make(map[string]*fair.Bucket)
		}
		r.owing[host] = its
	}
	share := r.share()
	owed := its.Missing(share, now)
	its.Take(min(float64(bytes+refusalCost), max(0, most.Seconds()*share.PerSecond-owed)))
	return min(most, its.Wait(share, 0, now))
}

// share returns what each host pays. r.mu is held.
func (r *Refusals) share() fair.Limit {
	return fair.Limit{PerSecond: refusalRate / float64(max(1, len(r.owing)))}
}
