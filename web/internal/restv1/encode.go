package restv1

import (
	"encoding/json"
	"encoding/xml"
	"net/http"

	"github.com/gozkd/gozkd/web/internal/answer"
	"github.com/gozkd/gozkd/web/internal/call"
)

const (
	jsonType = "application/json"
	xmlType  = "application/xml"
)

// encode returns an answer in the form that the caller wants, and its media type.
func encode(r *http.Request, v any) (b []byte, kind string, err error) {
	if wantsXML(r) {
		b, err = xml.Marshal(v)
		return append([]byte(`<?xml version="1.0" encoding="UTF-8" standalone="yes"?>`), b...), xmlType, err
	}
	b, err = json.Marshal(v)
	return b, jsonType, err
}

// write answers with a value that is made of this many bytes.
func write(w http.ResponseWriter, r *http.Request, status, bytes int, v any) error {
	var b []byte
	var kind string
	if err := call.Of(r).Heavy(bytes, func() (err error) { b, kind, err = encode(r, v); return err }); err != nil {
		return err
	}
	answer.Encoded(w, status, kind, b)
	return nil
}

// wantsXML reports whether the caller names XML and not JSON: without either the answer is JSON.
func wantsXML(r *http.Request) bool {
	return names(r, xmlType) && !names(r, jsonType)
}
