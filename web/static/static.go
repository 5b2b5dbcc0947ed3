// Package static holds the files of the explorer, and serves them.
package static

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io"
	"net/http"
	"path"
	"strings"
	"time"
)

// zipped has the files, which are served so. After a change run go generate.
//
//go:generate go test -run ^TestFiles_AreEmbedded$ -update
//go:embed zipped
var zipped embed.FS

// unzip returns the content of a compressed file.
func unzip(file []byte) []byte {
	r, err := gzip.NewReader(bytes.NewReader(file))
	if err != nil { // the files are part of the program
		panic(err)
	}
	plain, _ := io.ReadAll(r) // the same
	return plain
}

// kinds has the media types by the ends of names. The system's table may differ.
var kinds = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
}

// Handler serves the files below a path that ends with a slash. The files have ETags, and browsers
// ask each time whether they have changed.
func Handler(root string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "only GET and HEAD", http.StatusMethodNotAllowed)
			return
		}
		name := cmp.Or(strings.TrimPrefix(r.URL.Path, root), "index.html")
		body, err := zipped.ReadFile("zipped/" + name + ".gz")
		if err != nil {
			http.NotFound(w, r)
			return
		}
		h := w.Header()
		h.Set("Content-Type", kinds[path.Ext(name)])
		h.Set("Cache-Control", "no-cache")
		h.Set("Vary", "Accept-Encoding")
		if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			h.Set("Content-Encoding", "gzip")
		} else {
			body = unzip(body)
		}
		sum := sha256.Sum256(body) // another one for each form
		h.Set("ETag", `"`+hex.EncodeToString(sum[:12])+`"`)
		http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(body))
	})
}
