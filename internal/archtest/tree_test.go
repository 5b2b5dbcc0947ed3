package archtest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// maxFileBytes bounds each file in version control: a clone has all that ever was in it.
const maxFileBytes = 512 << 10

// trackedFile is a file in version control.
type trackedFile struct {
	name       string
	executable bool
	bytes      int64
}

// unfit lists the files that do not belong into version control: what is large was generated, and
// what is executable was built, except for the scripts of CI.
func unfit(files []trackedFile) []string {
	var findings []string
	for _, f := range files {
		if f.bytes > maxFileBytes {
			findings = append(findings, fmt.Sprintf("%s has %d bytes, allowed are %d", f.name, f.bytes, maxFileBytes))
		}
		if f.executable && !strings.HasPrefix(f.name, ".ci/") {
			findings = append(findings, f.name+" is executable: only scripts below .ci may be")
		}
	}
	return findings
}

// tracked returns the files of the index of git.
func tracked(t *testing.T) []trackedFile {
	t.Helper()
	if _, err := os.Stat(filepath.Join(root, ".git")); err != nil {
		t.Skipf("not a clone: %v", err)
	}
	cmd := exec.CommandContext(t.Context(), "git", "ls-files", "--stage", "-z")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("git ls-files: %v", err)
	}
	var files []trackedFile
	for entry := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") { // "100644 HASH 0\tNAME"
		mode, name, _ := strings.Cut(entry, "\t")
		info, err := os.Lstat(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil {
			continue // deleted, but not in the index yet
		}
		files = append(files, trackedFile{name, strings.HasPrefix(mode, "100755"), info.Size()})
	}
	return files
}

func TestTrackedFiles(t *testing.T) {
	files := tracked(t)
	report(t, unfit(files))
	if !slices.ContainsFunc(files, func(f trackedFile) bool { return f.name == ".ci/run" && f.executable && f.bytes > 0 }) {
		t.Error("the list of files lacks .ci/run, which is executable")
	}
}

func TestTrackedFiles_Finds(t *testing.T) {
	for want, f := range map[string]trackedFile{
		"a.svg has 524289 bytes": {"a.svg", false, 512<<10 + 1},
		"attacks is executable":  {"attacks", true, 1},
	} {
		if found := unfit([]trackedFile{f}); len(found) != 1 || !strings.Contains(found[0], want) {
			t.Errorf("found %q, want one finding with %q", found, want)
		}
	}
	if found := unfit([]trackedFile{{".ci/run", true, 1}, {"a.svg", false, 512 << 10}}); len(found) != 0 {
		t.Errorf("found %q, want nothing", found)
	}
}
