package facts

import "time"

// SlowRequest is a request that took longer than the configured time.
type SlowRequest struct {
	Time    time.Time // of the answer
	Took    time.Duration
	Op      string // as the protocol names it
	Path    string // printable, and shortened; "" if the request has none
	Session int64
	Client  string // address
}
