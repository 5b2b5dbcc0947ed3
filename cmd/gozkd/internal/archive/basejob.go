package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/gozkd/gozkd/internal/backoff"
	"github.com/gozkd/gozkd/internal/guid"
	"github.com/gozkd/gozkd/server/facts"
)

// baseJob makes a base: it waits until the log up to it is archived, then a goroutine uploads it.
type baseJob struct {
	capture *facts.Capture
	folder  string             // in the store
	cancel  context.CancelFunc // nil: the upload has not begun
	done    chan error         // gets the result of the upload; capacity 1
}

// boundary returns the index of the capture, where an object must end; 0: there is none.
func (j *baseJob) boundary() uint64 {
	if j == nil || j.cancel != nil {
		return 0
	}
	return j.capture.Index
}

// stop ends the upload, and waits for its end.
func (j *baseJob) stop() {
	if j != nil && j.cancel != nil {
		j.cancel()
		<-j.done //nolint:errcheck // most likely that it was canceled
	}
}

// dropBase gives up the base that is being made, if any.
func (s *Shipper) dropBase() {
	s.base.stop()
	s.base = nil
}

// makeBase begins and follows the making of a base, if one is due.
func (s *Shipper) makeBase(ctx context.Context) error {
	if s.base == nil {
		if due, err := s.needsBase(ctx); err != nil || !due {
			return err
		}
		c, err := s.capture(ctx)
		if err != nil {
			return err
		}
		s.base = &baseJob{capture: c}
		if err := s.ship(ctx); err != nil || s.base == nil {
			return err
		}
	}
	j := s.base
	switch {
	case j.cancel != nil:
		select {
		case err := <-j.done:
			j.cancel()
			if s.base, s.baseDue = nil, err != nil; err == nil {
				s.baseMade = time.Now()
			}
			return err
		default:
			return nil
		}
	case s.pos.index > j.capture.Index: // another member has passed it
		s.base = nil
	case s.pos.index == j.capture.Index:
		n := baseName{position: s.pos, zxid: j.capture.Zxid, ms: msOf(j.capture.Time), writer: random()}
		j.folder = n.in(s.ensemble)
		var uploading context.Context
		uploading, j.cancel = context.WithCancel(ctx)
		j.done = make(chan error, 1)
		ensemble := s.ensemble
		// Stopped by j.cancel, and awaited by stop or by the case above.
		go func() { j.done <- s.upload(uploading, ensemble, n, j.capture) }()
	}
	return nil
}

// needsBase reports whether the newest base is missing, or too old or too far behind. A base after
// which there is nothing is neither: another one would be the same.
func (s *Shipper) needsBase(ctx context.Context) (bool, error) {
	if !s.baseDue && s.rounds%housekeeping != 1 {
		return false, nil
	}
	c, err := s.catalog(ctx, "")
	if err != nil {
		return false, err
	}
	s.baseDue = true
	for _, b := range c.whole() {
		path, size := c.path(b.position), int64(0)
		if endOf(b.position, path).index < s.pos.index {
			continue
		}
		for _, o := range path {
			size += o.size
		}
		age := time.Since(c.at(b.ms, b.modified))
		if age < -clockTolerance {
			age = time.Since(s.baseMade) // for ever, if this shipper has made none
		}
		if len(path) == 0 || size < s.cfg.BaseBytes && age < s.cfg.BaseInterval {
			s.baseDue = false
		}
	}
	return s.baseDue, nil
}

// upload writes a base. Its last piece makes it complete.
func (s *Shipper) upload(ctx context.Context, ensemble uint64, n baseName, c *facts.Capture) (err error) {
	file, err := c.File(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	dir, piece := n.in(ensemble), make([]byte, pieceBytes)
	for part, left := 0, file.Size; left > 0; part++ {
		k, err := io.ReadFull(file, piece[:min(left, pieceBytes)])
		if err != nil {
			return fmt.Errorf("archive: read the backup: %w", err)
		}
		left -= int64(k)
		b := partHeader(ensemble, n, part).encode(piece[:k])
		for try := 0; ; try++ { // a base of many pieces must not be lost to a single failed request
			if err = s.put(ctx, dir+partName(part, left == 0), b); err == nil || try == 5 || !backoff.Sleep(ctx, s.cfg.Interval) {
				break
			}
		}
		if err != nil {
			return err
		}
	}
	s.cfg.Logger.Info("the archive has a new base", "index", n.index, "zxid", fmt.Sprintf("%#x", n.zxid), "bytes", file.Size)
	return nil
}

// random returns 8 hexadecimal digits, so that no two writers give the same name.
func random() string { return guid.NewHex()[:8] }
