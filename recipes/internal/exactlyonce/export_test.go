package exactlyonce

import (
	"context"

	"github.com/gozkd/gozkd/client"
)

// Do is Write with only the zxid of the write.
func (w *Writer) Do(ctx context.Context, ops ...client.Op) (zxid int64, err error) {
	r, err := w.Write(ctx, ops...)
	return r.Zxid, err
}
