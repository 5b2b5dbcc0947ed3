package admin

import (
	"net/http"
	"time"

	"github.com/gozkd/gozkd/server"
)

// Options configure the handler of New. Names in parentheses are ZooKeeper's keys.
type Options struct {
	// Snapshot lets administrators copy the whole state (admin.snapshot.enabled). An administrator
	// is a client with all permissions on the root znode, which is everybody until its ACL is
	// changed.
	Snapshot bool
	// Shed lets administrators close clients' connections.
	Shed bool
	// Interval is for how long after a snapshot the next snapshot is refused
	// (admin.rateLimiterIntervalInMS). Default: 5 minutes. Negative: none is refused.
	Interval time.Duration
	// Reload reads the program's configuration again, and must be safe for concurrent use. Its
	// error is shown. nil: the command reload does not exist.
	Reload func() error
	// InitialConfiguration is the text of the file that the server was configured from. Secrets in
	// the text are not shown. Empty: none.
	InitialConfiguration string
	// Properties are the settings that the program was given as -Dname=value, in any order. The
	// last setting with a name counts. Secrets are not shown.
	Properties []server.Setting
	// NotReady returns the program's own reason why no more clients should be sent to the server,
	// for example that it is about to stop, or nil. NotReady must be safe for concurrent use, and
	// may be nil.
	NotReady func() error
}

// New returns the admin commands of s, and its health checks: GET /livez and /readyz. New opens no
// port. To mount the handler under another path, use http.StripPrefix.
//
// The commands snapshot and shed_connections require all permissions on the root znode, with a
// header such as Authorization: digest user:password. There is no other authentication.
func New(s *server.Server, o Options) http.Handler {
	if o.Interval == 0 {
		o.Interval = 5 * time.Minute
	}
	return &handler{server: s, options: o}
}
