// Package static holds the files of the explorer, and serves them.
package static

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"
)

//go:embed css js views *.html *.svg
var files embed.FS // TestFiles_AreEmbedded compares it with the directory

type file struct {
	kind          string
	plain, zipped []byte
	etag          string
}

var load = sync.OnceValue(func() map[string]file {
	all := make(map[string]file)
	err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := files.ReadFile(name)
		sum := sha256.Sum256(b)
		all[name] = file{kinds[path.Ext(name)], b, zip(b), `"` + hex.EncodeToString(sum[:12]) + `"`}
		return err
	})
	if err != nil { // the files are part of the program
		panic(err)
	}
	return all
})

func zip(b []byte) []byte {
	var out bytes.Buffer
	w, _ := gzip.NewWriterLevel(&out, gzip.BestCompression) // the level is valid
	_, _ = w.Write(b)                                       // a Buffer has no errors
	_ = w.Close()
	return out.Bytes()
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
		f, ok := load()[name]
		if !ok {
			http.NotFound(w, r)
			return
		}
		h, body := w.Header(), f.plain
		h.Set("Content-Type", f.kind)
		h.Set("Cache-Control", "no-cache")
		h.Set("Vary", "Accept-Encoding")
		tag := f.etag
		if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			body, tag = f.zipped, f.etag[:len(f.etag)-1]+`-gzip"`
			h.Set("Content-Encoding", "gzip")
		}
		h.Set("ETag", tag)
		http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(body))
	})
}
