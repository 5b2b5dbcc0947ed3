package explore

import (
	"bytes"
	"errors"
	"io"
	"net/http"

	"github.com/gozkd/gozkd/web/internal/access"
	"github.com/gozkd/gozkd/web/internal/answer"
	"github.com/gozkd/gozkd/web/internal/call"
	"github.com/gozkd/gozkd/web/internal/unpack"
)

const maxUnpacked = 4 << 20

// decode answers with the body, decompressed.
func (e *explorer) decode(w http.ResponseWriter, r *http.Request) (any, error) {
	if err := call.Of(r).May(access.Read); err != nil {
		return nil, err
	}
	if as := r.URL.Query().Get("as"); as != "zstd" {
		return nil, bad("as is %.20q, allowed is zstd", as)
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, max(e.MaxBody, 1)))
	if err != nil {
		return nil, err
	}
	select {
	case e.unpacks <- struct{}{}: // after the body, which a caller may send slowly
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	data, err := unpack.Zstd(bytes.NewReader(body), maxUnpacked)
	<-e.unpacks
	switch {
	case errors.Is(err, unpack.ErrTooLarge):
		return nil, answer.Errorf(http.StatusRequestEntityTooLarge, "%v: more than %d bytes", err, maxUnpacked)
	case err != nil:
		return nil, bad("zstd: %v", err)
	}
	h := w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Disposition", "attachment")
	h.Set("Cache-Control", "no-store")
	_, _ = w.Write(data) // the caller has gone
	return nil, nil
}
