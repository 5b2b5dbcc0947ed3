package proto_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/gozkd/gozkd/proto"
	"pgregory.net/rapid"
)

func TestValidatePath(t *testing.T) {
	for _, path := range []string{
		"/", "/a", "/a/b", "/a b", "/...", "/.a", "/a.", "/..a", "/a/.b/c", "/a\u00a0", "/\u00e9", "/a\ud7ff", "/a\uf900", "/a\uffef", "/zookeeper",
		"/" + strings.Repeat("x", 5000),
	} {
		if err := proto.ValidatePath(path); err != nil {
			t.Errorf("%q: %v", path, err)
		}
	}
	for _, path := range []string{
		"", "a", "a/b", "//", "/a/", "/a//b", "//a", "/.", "/..", "/a/.", "/a/..", "/./a", "/../a", "/a/../b",
		"/a\x00", "/\x00b", "/a\x01", "/a\x1f/b", "/a\x7f", "/a\u0080", "/a\u009f", "/a\ue000", "/a\uefff", "/a\uf000", "/a\uf8ff", "/a\ufff0", "/a\ufffd", "/a\uffff",
		"/a\U00010000", "/a\U0001f600", "/a\U0010ffff", "/a\xff", "/a\xed\xa0\x80", "/a\xc3", "/\xe2\x82",
	} {
		if err := proto.ValidatePath(path); !errors.Is(err, proto.ErrInvalidPath) {
			t.Errorf("%q: %v, want ErrInvalidPath", path, err)
		}
	}
}

// TestValidatePath_AgreesWithJava compares with ZooKeeper's rule, by UTF-16 units, in which
// malformed input is U+FFFD.
func TestValidatePath_AgreesWithJava(t *testing.T) {
	piece := rapid.OneOf(
		rapid.SampledFrom([]string{"/", "/", "a", ".", "..", "//", " ", "\x00", "\x1f", "\x7f", "\u009f", "\u00a0", "\xff", "\ud7ff", "\ue000", "\uf8ff", "\uf900", "\uffef", "\ufff0", "\U0001f600"}),
		rapid.StringN(0, 2, 8),
	)
	rapid.Check(t, func(t *rapid.T) {
		path := strings.Join(rapid.SliceOfN(piece, 0, 8).Draw(t, "path"), "")
		if rapid.Bool().Draw(t, "absolute") {
			path = "/" + path
		}
		names := strings.Split(path, "/")
		bad := path == "" || path[0] != '/' || len(path) > 1 && slices.Contains(names[1:], "") ||
			slices.Contains(names[1:], ".") || slices.Contains(names[1:], "..") ||
			slices.ContainsFunc(utf16.Encode([]rune(path)), func(u uint16) bool {
				return u <= 0x1f || u >= 0x7f && u <= 0x9f || u >= 0xd800 && u <= 0xf8ff || u >= 0xfff0
			})
		if err := proto.ValidatePath(path); (err != nil) != bad {
			t.Fatalf("%q: %v, want an error: %t", path, err, bad)
		}
	})
}

func TestParentPath(t *testing.T) {
	for path, want := range map[string]string{"/": "/", "/a": "/", "/a/b": "/a", "/a/b/": "/a/b", "//": "/", "a/b": "a"} {
		if got := proto.ParentPath(path); got != want {
			t.Errorf("ParentPath(%q) = %q, want %q", path, got, want)
		}
	}
}
