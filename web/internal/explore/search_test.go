package explore

import (
	"context"
	"net/url"
	"strings"
	"testing"

	"github.com/gozkd/gozkd/internal/testkit/must"
)

// A search ends with its request, also while a regular expression works on a large znode.
func TestSearch_Interrupted(t *testing.T) {
	_, content, err := patterns(url.Values{"regexp": {""}, "content": {"b$"}})
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
	if at := content(r); at != nil || len(r.data) < len(data)-64 {
		t.Errorf("found at %v, %d bytes are left", at, len(r.data))
	}
}

// So do names, which may be as long as data.
func TestSearch_InterruptedName(t *testing.T) {
	long := strings.Repeat("a", 1<<20) + "b"
	for query, matches := range map[string]bool{"regexp&name=B$": true, "regexp&name=c$": false, "name=ab": true, "name=ac": false, "name=*a*b": true, "name=*c": false} {
		name, _, err := patterns(must.Get(url.ParseQuery(query)))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		if name(ctx, long) != matches {
			t.Errorf("%s: %v", query, !matches)
		}
		cancel()
		if !strings.Contains(query, "*") && name(ctx, long) {
			t.Errorf("%s goes on after the end", query)
		}
	}
	if _, _, err := patterns(url.Values{"name": {"*" + strings.Repeat("a", 256)}}); err == nil {
		t.Error("a long glob")
	}
}
