package explore

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
)

// A search ends with its request, also while a regular expression works on a large znode.
func TestSearch_Interrupted(t *testing.T) {
	_, content, err := patterns(httptest.NewRequest(http.MethodGet, "/?regexp&content=b$", nil))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	data := append(make([]byte, 1<<20), 'b')
	if at := content(&interruptible{ctx: ctx, data: data}); len(at) != 2 || at[0] != 1<<20 {
		t.Errorf("found at %v", at)
	}
	cancel()
	r := &interruptible{ctx: ctx, data: data}
	if at := content(r); at != nil || len(r.data) < len(data)-4096 {
		t.Errorf("found at %v, %d bytes are left", at, len(r.data))
	}
}
