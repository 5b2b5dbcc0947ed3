package shell

import (
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/gozkd/gozkd/proto"
)

func TestCheckPath(t *testing.T) {
	for path, want := range map[string]string{
		"/":             "",
		"/a.b/..c":      "",
		"":              "Path length must be > 0",
		"a":             "Path must start with / character",
		"/a/":           "Path must not end with / character",
		"//a":           `Invalid path string "//a" caused by empty node name specified @1`,
		"/a/../b":       `Invalid path string "/a/../b" caused by relative paths not allowed @4`,
		"/a/.":          `Invalid path string "/a/." caused by relative paths not allowed @3`,
		"/a\x00":        "Invalid path string \"/a\x00\" caused by null character not allowed @2",
		"/é\u0085":      "Invalid path string \"/é\u0085\" caused by invalid character @2",
		"/a\U0001F600b": "Invalid path string \"/a\U0001F600b\" caused by invalid character @2",
		"/\ufff0":       "Invalid path string \"/\ufff0\" caused by invalid character @1",
	} {
		got := ""
		if err := checkPath(path); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q: got %q, want %q", path, got, want)
		}
	}
}

// The shell and servers reject the same paths, with different messages.
func TestCheckPath_AgreesWithServers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		path := "/" + rapid.StringOf(rapid.RuneFrom([]rune("a./\x00\x1f\u007f\u009fé\ud7ff\ue000\uf8ff\uffef\ufff0\U0001F600"))).Draw(t, "path")
		ours, theirs := checkPath(path), proto.ValidatePath(path)
		if (ours == nil) != (theirs == nil) {
			t.Errorf("%q: %v, but %v", path, ours, theirs)
		}
		if ours != nil && !errors.As(ours, new(usageError)) {
			t.Errorf("%q: %T is no complaint of the line", path, ours)
		}
	})
}
