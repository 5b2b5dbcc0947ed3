package static_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"flag"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gozkd/gozkd/web/static"
)

func ask(t *testing.T, path string, header http.Header) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
	r.Header = header
	w := httptest.NewRecorder()
	static.Handler("/ui/").ServeHTTP(w, r)
	return w
}

var update = flag.Bool("update", false, "compress the files of the explorer into the directory zipped")

// The program has each file, compressed, and no other.
func TestFiles_AreEmbedded(t *testing.T) {
	if *update {
		compress(t)
		return
	}
	all := read(t)
	err := fs.WalkDir(os.DirFS("zipped"), ".", func(name string, d fs.DirEntry, err error) error {
		if text, ok := strings.CutSuffix(name, ".gz"); err == nil && !d.IsDir() && (!ok || all[text] == "") {
			t.Errorf("zipped/%s is none of the explorer's files: run go generate ./web/static", name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range all {
		if w := ask(t, "/ui/"+name, nil); w.Code != http.StatusOK || w.Body.String() != text || w.Header().Get("Content-Type") == "" {
			t.Errorf("%s: status %d, %d bytes of type %q, want %d: run go generate ./web/static", name, w.Code, w.Body.Len(), w.Header().Get("Content-Type"), len(text))
		}
	}
	for _, path := range []string{"/ui/static.go", "/ui/nope", "/ui/css", "/ui/js/../index.html"} {
		if w := ask(t, path, nil); w.Code != http.StatusNotFound {
			t.Errorf("%s: status %d", path, w.Code)
		}
	}
}

// compress writes the directory zipped.
func compress(t *testing.T) {
	t.Helper()
	if err := os.RemoveAll("zipped"); err != nil {
		t.Fatal(err)
	}
	for name, text := range read(t) {
		var out bytes.Buffer
		z, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
		if err != nil {
			t.Fatal(err)
		}
		_, err = io.WriteString(z, text)
		path := filepath.Join("zipped", filepath.FromSlash(name)+".gz")
		if err := errors.Join(err, z.Close(), os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, out.Bytes(), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestFiles_ZippedAndNotModified(t *testing.T) {
	plain := ask(t, "/ui/", nil)
	zipped := ask(t, "/ui/", http.Header{"Accept-Encoding": {"gzip, br"}})
	z, err := gzip.NewReader(zipped.Body)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(z); err != nil || string(text) != plain.Body.String() {
		t.Errorf("%d bytes, %v", len(text), err)
	}
	tag := zipped.Header().Get("ETag")
	if tag == plain.Header().Get("ETag") {
		t.Error("one ETag for two forms")
	}
	if w := ask(t, "/ui/", http.Header{"Accept-Encoding": {"gzip"}, "If-None-Match": {tag}}); w.Code != http.StatusNotModified || w.Body.Len() > 0 {
		t.Errorf("status %d", w.Code)
	}
}
