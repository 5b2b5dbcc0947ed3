// Package version says which version of gozkd a program contains. The four-letter words of a server
// and gozkd --version both use it, so that they agree.
package version

import (
	"os"
	"runtime/debug"
	"time"
)

// Number is the version of this source tree, without a leading v. It must be set before a release
// is tagged.
const Number = "0.1.0"

// Revision returns the first digits of the commit that the program was built from, with "-dirty" if
// the work tree had changes. It returns "" if the go command did not record a commit.
func Revision() string {
	revision := setting("vcs.revision")
	revision = revision[:min(len(revision), 12)]
	if revision != "" && setting("vcs.modified") == "true" {
		revision += "-dirty"
	}
	return revision
}

// Built returns the time of the commit that the program was built from. Without it, Built returns
// the modification time of the program's file, and without that the Unix epoch.
func Built() time.Time {
	if t, err := time.Parse(time.RFC3339, setting("vcs.time")); err == nil {
		return t
	}
	if name, err := os.Executable(); err == nil {
		if file, err := os.Stat(name); err == nil {
			return file.ModTime()
		}
	}
	return time.Unix(0, 0)
}

// setting returns the build setting that the go command recorded under key, or "".
func setting(key string) string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == key {
				return s.Value
			}
		}
	}
	return ""
}
