package static_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
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

func TestFiles_AreEmbedded(t *testing.T) {
	for name, text := range read(t) {
		if w := ask(t, "/ui/"+name, nil); w.Code != http.StatusOK || w.Body.String() != text || w.Header().Get("Content-Type") == "" {
			t.Errorf("%s: status %d, %d bytes of type %q, want %d", name, w.Code, w.Body.Len(), w.Header().Get("Content-Type"), len(text))
		}
	}
	for _, path := range []string{"/ui/static.go", "/ui/nope", "/ui/css", "/ui/js/../index.html"} {
		if w := ask(t, path, nil); w.Code != http.StatusNotFound {
			t.Errorf("%s: status %d", path, w.Code)
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
