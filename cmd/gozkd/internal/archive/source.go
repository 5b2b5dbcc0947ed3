package archive

import (
	"context"

	"github.com/gozkd/gozkd/consensus"
	"github.com/gozkd/gozkd/server/facts"
)

// Source is a server whose log is archived: server.Backups.
type Source interface {
	LogPosition() facts.LogPosition
	ReplicatedLog(from uint64, size int64) ([]consensus.LogEntry, error)
	KeepLog(from uint64)
	// Capture returns the state, with everything that was committed before the call.
	Capture(ctx context.Context) (*facts.Capture, error)
}
