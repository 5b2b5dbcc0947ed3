package top

import (
	"time"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/probe"
)

// Sample is the result of asking one member once.
type Sample struct {
	// Address is the address of the Entry.
	Address string
	// At is when srvr was answered or failed.
	At time.Time
	// Asked is the number of words that this process has asked the member so far. Each counts as a
	// packet.
	Asked int64
	// Err is why there is no State: the member is down or does not serve. The other fields are
	// empty then.
	Err   error
	State probe.State

	Monitor    probe.Monitor
	MonitorErr error
	// Clients are the connections with a session.
	Clients    []probe.Connection
	ClientsErr error
	Hot        probe.Hot
	HotErr     error
}

// Entry is a server to watch.
type Entry struct {
	Address string
	// ID is the member number; 0 means that the number is unknown or the server is standalone.
	ID uint64
}

// Report is a sample and the roster after it.
type Report struct {
	Sample Sample
	Roster []Entry
}
