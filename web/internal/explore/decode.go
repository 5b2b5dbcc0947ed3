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
	var data []byte
	if late := call.Of(r).Heavy(maxUnpacked, func() { data, err = unpack.Zstd(bytes.NewReader(body), maxUnpacked) }); late != nil {
		return nil, late
	}
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
