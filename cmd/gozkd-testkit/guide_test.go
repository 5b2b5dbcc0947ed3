//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gozkd/gozkd/internal/testkit/program"
)

// The commands of the pages about test kits for any language work as they are written.
func TestGuide(t *testing.T) {
	for _, name := range []string{"sh", "curl", "python3"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("the commands of docs/guide/testing.md need %s, which is not installed: %v", name, err)
		}
	}
	bin, dir := t.TempDir(), t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, script := range map[string]string{
		filepath.Join(bin, "gozkd-testkit"):    "#!/bin/sh\nexec '" + self + "' \"$@\"\n",
		filepath.Join(bin, "curl"):             "#!/bin/sh\nPATH=${PATH#*:} exec curl -sS --fail --max-time 60 \"$@\"\n",
		filepath.Join(dir, "integration-test"): "#!/bin/sh\necho \"${ZOOKEEPER_CONNECT:?}\" >> ran\n",
	} {
		if err := os.WriteFile(name, []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for page, want := range map[string]int{"testing.md": 1, "testkits/README.md": 1} {
		text, err := os.ReadFile(filepath.Join("..", "..", "docs", "guide", filepath.FromSlash(page)))
		if err != nil {
			t.Fatal(err)
		}
		scripts := strings.Split(string(text), "```sh\n")[1:]
		if len(scripts) != want {
			t.Errorf("%s has %d scripts, want %d", page, len(scripts), want)
		}
		for _, script := range scripts {
			script, _, _ = strings.Cut(script, "```")
			cmd := program.Command()
			script = "trap '[ -z \"$!\" ] || { kill $!; wait $!; }' EXIT\n" + script
			cmd.Path, cmd.Args = "/bin/sh", []string{"sh", "-ec", script}
			cmd.Dir, cmd.Env = dir, append(cmd.Env, "PATH="+bin+":"+os.Getenv("PATH"))
			if output, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%s: %v\n%s\n%s", page, err, script, output)
			}
		}
	}
	if ran, err := os.ReadFile(filepath.Join(dir, "ran")); err != nil || strings.Count(string(ran), "\n") != 1+1+50 {
		t.Errorf("the program under test was run so often: %v\n%s", err, ran)
	}
}
