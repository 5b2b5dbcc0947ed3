// Package unpack decompresses formats that browsers do not know.
package unpack

import (
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
)

// maxWindow is the largest window that a zstd frame may ask for: that of its top ordinary level.
const maxWindow = 8 << 20

// ErrTooLarge is the error of data that become larger than allowed.
var ErrTooLarge = errors.New("the decompressed data is too large")

// Zstd decompresses frames into at most limit bytes, in memory bounded by that and the window.
func Zstd(r io.Reader, limit int64) ([]byte, error) {
	d, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
	if err != nil {
		return nil, fmt.Errorf("zstd: %w", err)
	}
	defer d.Close()
	b, err := io.ReadAll(io.LimitReader(d, limit+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("zstd: %w", err)
	case int64(len(b)) > limit:
		return nil, fmt.Errorf("zstd: %w: the limit is %d bytes", ErrTooLarge, limit)
	}
	return b, nil
}
