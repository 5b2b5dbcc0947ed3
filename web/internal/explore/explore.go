// Package explore answers the requests of the explorer below /ui/api/, as docs/internals/web.md describes
// them.
//
// A handler finds its caller with call.Of: c.Client() is a session with the caller's identities, c.May a
// check of the role, and c.Audit an event of the audit log. Package answer writes the answer. A handler
// must bound what it reads and what it answers.
package explore

import (
	"net/http"

	"github.com/gozkd/gozkd/server"
)

// Deps is what the handlers need besides the call.
type Deps struct {
	Server *server.Server
	// MaxBody bounds bodies in bytes, except that of an import.
	MaxBody int64
}

// Register adds the handlers to mux. Requests have the role that their handlers demand; everybody who can
// reach the server gets as far as the handler.
func Register(mux *http.ServeMux, d Deps) {
}
