package exactlyonce

import "context"

// Do is Write with only the zxid of the write.
func (w *Writer) Do(ctx context.Context, ops ...any) (zxid int64, err error) {
	r, err := w.Write(ctx, ops...)
	return r.Zxid, err
}
