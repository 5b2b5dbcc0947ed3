package ensemble

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCheck_OtherNumberOfMembers(t *testing.T) {
	for _, c := range []struct {
		used    string // directories with data, below the directory
		members int
		want    string
	}{
		{"", 1, ""}, {"", 3, ""}, {".", 1, ""}, {"1 2 3", 3, ""}, {"3", 3, ""},
		{".", 3, "has the data of a server alone, and 3 members want"},
		{"1 2 3", 5, "has the data of 3 members, and 5 want to use it: start 3"},
		{"1 2 3", 1, "has the data of 3 members, and 1 want"},
	} {
		dir := t.TempDir()
		for name := range strings.FieldsSeq(c.used) {
			if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, name, "LOCK"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		err := checkDir(dir, c.members)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q, %d members: %v, want %q", c.used, c.members, err, c.want)
		}
	}
	if dirOf("", 2, 3) != "" || dirOf("d", 1, 1) != "d" || dirOf("d", 2, 3) != filepath.Join("d", "2") || checkDir("", 3) != nil {
		t.Error("directories of members")
	}
}
