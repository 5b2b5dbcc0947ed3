package store

import (
	"context"
	"errors"
	"net"
	"os"
	"sync/atomic"
	"time"
)

// patience is for how long a request may make no progress.
const patience = 30 * time.Second

var errStalled = errors.New("nothing was taken, and no answer or no further byte of it came, for " + patience.String())

// steady is a connection that fails if it makes no progress: the store takes nothing of an upload,
// or nothing of its answer comes. A slow request that makes some does not fail: objects are large,
// and links between sites may be slow.
type steady struct {
	net.Conn
	stalled atomic.Bool
}

// dialSteady is the DialContext of the transport.
func (b *bucket) dialSteady(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := b.dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &steady{Conn: conn}, nil
}

func (s *steady) Read(b []byte) (int, error) {
	if err := s.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return 0, err
	}
	n, err := s.Conn.Read(b)
	return n, s.explain(err)
}

// Write also gives the answer more time: until the upload has been taken, none comes.
func (s *steady) Write(b []byte) (int, error) {
	if err := s.SetDeadline(time.Now().Add(patience)); err != nil {
		return 0, err
	}
	n, err := s.Conn.Write(b)
	return n, s.explain(err)
}

// explain replaces the errors of a stalled connection, also those of the closing that follows.
func (s *steady) explain(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		s.stalled.Store(true)
	}
	if err != nil && s.stalled.Load() {
		return errStalled
	}
	return err
}
