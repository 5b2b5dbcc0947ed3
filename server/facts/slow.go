package facts

import (
	"time"

	"github.com/gozkd/gozkd/proto"
)

// SlowRequest is a request that took longer than the configured time.
type SlowRequest struct {
	Time    time.Time // of the answer
	Took    time.Duration
	Op      string // as the protocol names it
	Path    string // printable, and shortened; "" if the request has none
	Session proto.SessionID
	Client  string // address
	Zxid    proto.Zxid
}
