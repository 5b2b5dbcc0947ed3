package zktest_test

import (
	"maps"
	"testing"

	"github.com/gozkd/gozkd/zktest"
)

func TestLoadTxtar(t *testing.T) {
	s := zktest.Start(t)
	s.LoadTxtar("a comment\n-- /app --\n-- /app/two --\none\n\n--  /app/crlf  --\r\n-- not a file\n--no file --\n-- --\n-- /app/end --\nno newline")
	got := s.Tree("/app")
	want := map[string]string{
		"/app": "", "/app/two": "one\n", "/app/crlf": "-- not a file\n--no file --\n-- --", "/app/end": "no newline",
	}
	if !maps.Equal(got, want) {
		t.Errorf("loaded %q, want %q", got, want)
	}
}
