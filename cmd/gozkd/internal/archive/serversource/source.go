// Package serversource lets a server's log be archived. It is apart from package archive because
// tools that read archives need no server.
package serversource

import (
	"context"
	"io"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/archive"
	"github.com/gozkd/gozkd/server"
)

// Of returns a server as the source of an archive.
func Of(s *server.Server) archive.Source { return source{s} }

type source struct{ *server.Server }

// Capture implements archive.Source.
func (s source) Capture(ctx context.Context) (*archive.Capture, error) {
	c, err := s.Server.Capture(ctx)
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
