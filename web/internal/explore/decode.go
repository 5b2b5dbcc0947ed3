package explore

import (
	"bytes"
	"errors"
	"net/http"

	"github.com/gozkd/gozkd/web/internal/answer"
	"github.com/gozkd/gozkd/web/internal/unpack"
)

const maxUnpacked = 4 << 20

func (e *explorer) decode(q *request) (any, error) {
	if as := q.query.Get("as"); as != "zstd" {
		return nil, answer.Bad("as is %.20q, allowed is zstd", as)
	}
	body, err := q.ReadBody(q.w)
	if err != nil {
		return nil, err
	}
	var data []byte
	late := q.Heavy(maxUnpacked, func() error { data, err = unpack.Zstd(bytes.NewReader(body), maxUnpacked); return nil })
	switch {
	case late != nil:
		return nil, late
	case errors.Is(err, unpack.ErrTooLarge):
		return nil, answer.Errorf(http.StatusRequestEntityTooLarge, "%v: more than %d bytes", err, maxUnpacked)
	case err != nil:
		return nil, answer.Bad("zstd: %v", err)
	}
	answer.Attachment(q.w, data)
	return nil, nil
}
