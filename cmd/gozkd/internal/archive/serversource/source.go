// Package serversource lets a server's log be archived. It is apart from package archive because
// tools that read archives need no server.
package serversource

import (
	"context"
	"io"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/archive"
	"github.com/gozkd/gozkd/consensus"
	"github.com/gozkd/gozkd/server"
)

// Of returns a server as the source of an archive.
func Of(s *server.Server) archive.Source { return source{s} }

// Stats returns what a shipper reports in the form that the server's metrics take.
func Stats(s *archive.Shipper) func() server.ArchiveStats {
	return func() server.ArchiveStats { return server.ArchiveStats(s.Stats()) }
}

type source struct{ server *server.Server }

// Position implements archive.Source.
func (s source) Position() archive.Position { return archive.Position(s.server.LogPosition()) }

// Log implements archive.Source.
func (s source) Log(from uint64, size int64) ([]consensus.LogEntry, error) {
	return s.server.ReplicatedLog(from, size)
}

// Keep implements archive.Source.
func (s source) Keep(from uint64) { s.server.KeepLog(from) }

// Capture implements archive.Source.
func (s source) Capture(ctx context.Context) (*archive.Capture, error) {
	c, err := s.server.Capture(ctx)
	if err != nil {
		return nil, err
	}
	return &archive.Capture{
		Zxid: c.Zxid, Index: c.Index, Term: c.Term, Time: c.Time,
		File: func(ctx context.Context) (io.ReadCloser, int64, error) {
			b, err := c.File(ctx)
			if err != nil {
				return nil, 0, err
			}
			return b, b.Size, nil
		},
	}, nil
}
