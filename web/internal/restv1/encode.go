package restv1

import (
	"encoding/json"
	"encoding/xml"
	"net/http"

	"github.com/gozkd/gozkd/web/internal/answer"
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

func write(w http.ResponseWriter, r *http.Request, status int, v any) {
	b, kind, err := encode(r, v)
	if err != nil { // no type of this package
		answer.Fail(w, answer.Errorf(http.StatusInternalServerError, "%v", err))
		return
	}
	answer.Encoded(w, status, kind, b)
}

// wantsXML reports whether the caller names XML and not JSON: without either the answer is JSON.
func wantsXML(r *http.Request) bool {
	return names(r, xmlType) && !names(r, jsonType)
}
