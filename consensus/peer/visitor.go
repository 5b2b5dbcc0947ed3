package peer

import (
	"context"
	"net"
	"time"
)

// maxLobby is the largest bound on the connections of callers that have not proved their identity.
// A member needs milliseconds to prove it.
const maxLobby = 256

type visitor struct {
	conn   net.Conn
	cancel context.CancelCauseFunc // ends all that is done for the connection, and closes it
	host   string                  // see fair.Host

	// Owned by serve.
	until  time.Time   // the caller waits for an answer until then
	enc    *encryption // how the connection was accepted
	stream net.Conn    // conn, or what TLS makes of it
}
