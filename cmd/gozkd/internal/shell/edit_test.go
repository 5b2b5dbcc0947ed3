//go:build !windows

package shell

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gozkd/gozkd/zktest"
)

func TestEdit(t *testing.T) {
	server := zktest.Start(t)
	at := server.ConnectString()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	theirs := asProgram + "=1 " + self + " -server " + at
	for _, c := range []struct {
		name, data, editor string
		status             int
		out, err           string // contained
		now                string
		kept               string // content of the file left behind; "" if none
	}{
		{"changed", "a", "printf b >", 0, "/x now has version 1", "", "b", ""},
		{"an editor ends lines", "a", "printf 'b\\n' >", 0, "version 1", "", "b", ""},
		{"lines stay lines", "a\n", "printf 'b\\n' >", 0, "version 1", "", "b\n", ""},
		{"only a newline more", "a", "printf 'a\\n' >", 0, "/x is unchanged", "", "a", ""},
		{"unchanged", "a", "true", 0, "/x is unchanged", "", "a", ""},
		{"arguments", "a", `sh -c 'printf "$0" > "$1"' arg`, 0, "version 1", "", "arg", ""},
		{"emptied", "a", ":>", 0, "version 1", "", "", ""},
		{"editor fails", "a", "false", 1, "", `edit: the editor "false": exit status 1`, "a", ""},
		{"editor fails late", "a", "f() { printf b > $1; false; }; f", 1, "", "nothing was written\nYour text is in ", "a", "b"},
		{"no editor", "a", "no-such-editor", 1, "", "exit status 127", "a", ""},
		{"changed by others", "a", theirs + " set /x theirs; printf mine >", 1, "",
			"/x has changed: you edited version 0, it now has version 1. Nothing was written.", "theirs", "mine"},
		{"deleted by others", "a", theirs + " delete /x; printf mine >", 1, "", "/x has been deleted. Nothing was written.", "", "mine"},
		{"no text", "\xff", "printf b >", 1, "", "is not UTF-8 text", "\xff", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			temp := t.TempDir()
			t.Setenv("TMPDIR", temp)
			runCLI(t, "", nil, "-server", at, "delete", "/x")
			if r := runCLI(t, "", nil, "-server", at, "create", "/x", c.data); r.status != 0 {
				t.Fatal(r)
			}
			r := runCLI(t, "", map[string]string{"EDITOR": c.editor}, "-server", at, "edit", "/x")
			if r.status != c.status || !strings.Contains(r.out, c.out) || !strings.Contains(r.err, c.err) {
				t.Errorf("%+v", r)
			}
			if got := runCLI(t, "", nil, "-server", at, "get", "/x"); got.out != c.now {
				t.Errorf("the data is %q", got.out)
			}
			files, err := filepath.Glob(temp + "/*/*")
			if err != nil || (len(files) > 0) != (c.kept != "") {
				t.Fatalf("left behind: %q, %v", files, err)
			}
			for _, f := range files {
				text, err := os.ReadFile(f)
				if err != nil || string(text) != c.kept || !strings.Contains(r.err, f) {
					t.Errorf("%s has %q, %v; printed was %s", f, text, err, r.err)
				}
				if info, err := os.Stat(f); err != nil || info.Mode().Perm() != 0o600 {
					t.Errorf("%s: %v, %v", f, info.Mode(), err)
				}
			}
		})
	}
}
