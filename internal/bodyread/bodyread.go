// Package bodyread reads the bodies of messages whose length came before them.
package bodyread

import (
	"errors"
	"io"
)

// Read reads n bytes, into reuse if they fit. It allocates at most first bytes before they arrive,
// and then at most twice as much as has arrived. So a sender of wrong lengths must send as much as
// this side allocates. With an error, which is as for Within, Read returns the part that has
// arrived.
func Read(r io.Reader, reuse []byte, n, first int) ([]byte, error) {
	body := reuse[:0]
	if body == nil || cap(body) < n {
		body = make([]byte, 0, min(n, first))
	}
	for {
		have := len(body)
		body = body[:min(n, cap(body))]
		if got, err := io.ReadFull(r, body[have:]); err != nil {
			return body[:have+got], Within(err)
		}
		if len(body) == n {
			return body, nil
		}
		grown := make([]byte, len(body), min(n, 2*cap(body)))
		copy(grown, body)
		body = grown
	}
}

// Within turns io.EOF in the middle of a message into io.ErrUnexpectedEOF.
func Within(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
