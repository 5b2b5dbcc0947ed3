package top

import (
	"time"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/probe"
)

// Sample is what one member said in one round of questions.
type Sample struct {
	// Address is the member's, as Entry has it.
	Address string
	// At is when srvr was answered, or when the member did not.
	At time.Time
	// Asked is how many words this process asked the member so far. Each of them is a packet in the member's counters.
	Asked int64
	// Err is why there is no State: the member is down, or does not serve. The other fields are empty then.
	Err   error
	State probe.State

	Monitor    probe.Monitor
	MonitorErr error
	// Clients are connections with a session.
	Clients    []probe.Connection
	ClientsErr error
	Hot        probe.Hot
	HotErr     error
}

// Entry is a member that is watched.
type Entry struct {
	Address string
	// ID is its number in the ensemble; 0 while that is not known, and of a standalone server.
	ID uint64
}

// Report is a sample and who is watched after it.
type Report struct {
	Sample Sample
	Roster []Entry
}
