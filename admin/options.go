package admin

import (
	"net/http"
	"time"

	"github.com/gozkd/gozkd/server"
)

// Options say what else the handler of New does. Names in parentheses are ZooKeeper's keys.
type Options struct {
	// Snapshot lets who has all permissions on the root znode, which is everybody until its ACL is changed, take away the whole state
	// (admin.snapshot.enabled).
	Snapshot bool
	// Shed lets them close clients' connections.
	Shed bool
	// Interval is how long after a snapshot the next one is refused (admin.rateLimiterIntervalInMS). Default: 5 minutes. Negative: none is.
	Interval time.Duration
	// Reload reads the program's configuration again; its error is shown. It may be called by several goroutines at a time. nil: there is
	// no command reload.
	Reload func() error
	// InitialConfiguration is the text of the file that the server was configured from. Secrets in it are not shown. Empty: none.
	InitialConfiguration string
	// Properties are the settings that the program was given in the form -Dname=value, in any order. The last of
	// a name counts. Secrets are not shown.
	Properties []server.Setting
	// NotReady returns a reason of the program's own why no more clients shall be sent to the server, such as that it is about to stop, or nil.
	// It may be called by several goroutines at a time. nil: there is none.
	NotReady func() error
}

// New returns the admin commands of s, and what tells whether it is well: GET /livez and /readyz. As Handler it is mounted under another path with
// http.StripPrefix, and it opens no port.
//
// The commands snapshot and shed_connections ask for all permissions on the root znode, with a header such as
// Authorization: digest user:password. There is no other authentication.
func New(s *server.Server, o Options) http.Handler {
	if o.Interval == 0 {
		o.Interval = 5 * time.Minute
	}
	return &handler{server: s, options: o}
}
