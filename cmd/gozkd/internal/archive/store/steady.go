package store

import (
	"errors"
	"io"
	"time"
)

// patience is for how long a request may make no progress. A slow request that makes some does not
// fail: objects are large, and links between sites may be slow.
const patience = 30 * time.Second

var errStalled = errors.New("nothing was taken, and no answer or no further byte of it came, for " + patience.String())

// steady reads the body of a request or an answer. Each read gives the request more time.
type steady struct {
	io.Reader
	end *time.Timer // ends the request
}

func (s steady) Read(b []byte) (int, error) {
	s.end.Reset(patience)
	return s.Reader.Read(b)
}
