package archive

import (
	"context"
	"io"
	"time"

	"github.com/gozkd/gozkd/consensus"
	"github.com/gozkd/gozkd/server/facts"
)

// Source is a server whose log is archived. Its methods but Capture are those of server.Server:
// see package serversource.
type Source interface {
	LogPosition() facts.LogPosition
	ReplicatedLog(from uint64, size int64) ([]consensus.LogEntry, error)
	KeepLog(from uint64)
	// Capture returns the state, with everything that was committed before the call.
	Capture(ctx context.Context) (*Capture, error)
}

// Capture is the state at one moment.
type Capture struct {
	Zxid        int64
	Index, Term uint64 // of the last entry in it
	Time        time.Time
	// File makes the checkpoint file, of which it also returns the size. It is called at most once.
	File func(ctx context.Context) (io.ReadCloser, int64, error)
}
