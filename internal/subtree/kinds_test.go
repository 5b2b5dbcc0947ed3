package subtree_test

import (
	"maps"
	"testing"

	"github.com/gozkd/gozkd/internal/subtree"
)

func TestParseKinds(t *testing.T) {
	for _, c := range []struct {
		answer, chroot string
		want           subtree.Kinds // nil: an error
	}{
		{"0\n", "", subtree.Kinds{}},
		{"container\t/a\nttl\t60000\t/b c\n2\n", "", subtree.Kinds{"/a": 0, "/b c": 60000}},
		{"container\t/app/a\ncontainer\t/application\ncontainer\t/app\n3\n", "/app", subtree.Kinds{"/a": 0}},
		{"", "", nil},
		{"container\t/a\n", "", nil},       // truncated
		{"container\t/a\nttl\t6", "", nil}, // truncated in a line
		{"container\t/a\n2\n", "", nil},    // a line is missing
		{"ttl\t0\t/a\n1\n", "", nil},       // invalid TTL
		{"ttl\tx\t/a\n1\n", "", nil},       //
		{"leaf\t/a\n1\n", "", nil},         // of a later release
		{"0\ncontainer\t/a\n", "", nil},    // out of order
		{"unknown command\n", "", nil},     //
	} {
		got, err := subtree.ParseKinds(c.answer, c.chroot)
		if (err == nil) != (c.want != nil) || !maps.Equal(got, c.want) {
			t.Errorf("%q: %v, %v, want %v", c.answer, got, err, c.want)
		}
	}
}
