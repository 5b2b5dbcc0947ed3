// Package version says which gozkd a program contains. The four-letter words of a server, its
// metrics, its log and gozkd --version all use it, so that they agree.
package version

import (
	"cmp"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"
)

const root = "github.com/gozkd/gozkd"

// Devel is the Number of a program that was not built from a tag.
const Devel = "devel"

// The linker sets these for a build that the go command cannot tell the version of, because it
// happens outside of the repository: see deploy/Dockerfile.
var tag, revision string

// Info describes the gozkd in a program.
type Info struct {
	Number   string // of the tag, such as "0.1.0", or Devel
	Revision string // the first 12 digits of the commit; empty: unknown
	Dirty    bool   // there were changes that are not in the commit
	Go       string // the release of Go, such as "go1.26.8"
}

// Get returns the Info of this program.
var Get = sync.OnceValue(func() Info {
	b, _ := debug.ReadBuildInfo()
	return read(b, tag, revision)
})

// String returns the Info in letters, digits, dots and hyphens, because clients accept no others
// in the version of a server: "0.1.0-f70422a5f4b5-dirty-go1.26.8".
func (i Info) String() string {
	s := i.Number
	if i.Revision != "" {
		s += "-" + i.Revision
	}
	if i.Dirty {
		s += "-dirty"
	}
	others := func(r rune) bool { return !strings.ContainsRune(allowed, r) }
	return strings.Join(strings.FieldsFunc(s+"-"+i.Go, others), "-")
}

// Line returns the Info as people read it: "0.1.0 (f70422a5f4b5), go1.26.8, linux/amd64".
func (i Info) Line() string { return i.line(runtime.GOOS, runtime.GOARCH) }

func (i Info) line(goos, goarch string) string {
	of := i.Revision
	if i.Dirty {
		of = strings.TrimPrefix(of+"-dirty", "-")
	}
	if of != "" {
		of = " (" + of + ")"
	}
	return fmt.Sprintf("%s%s, %s, %s/%s", i.Number, of, i.Go, goos, goarch)
}

const allowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-"

// pseudo returns the commit of a version that the go command makes for a commit without a tag, such
// as v0.1.1-0.20261129074240-f70422a5f4b5, or "". Not by package regexp, which a program that
// embeds a server would link for this alone.
func pseudo(v string) (commit string) {
	const at, digits = "20060102150405", 12
	if n := len(v) - len(at) - 1 - digits; n > 0 && strings.IndexByte("-.", v[n-1]) >= 0 && v[n+len(at)] == '-' {
		commit = v[n+len(at)+1:]
		_, errTime := time.Parse(at, v[n:n+len(at)])
		_, errHex := strconv.ParseUint(commit, 16, 64)
		if errTime == nil && errHex == nil {
			return commit
		}
	}
	return ""
}

// read takes the version from the module of the program, or from that of the library in somebody
// else's program, and the commit from the repository that the program was built in, if it is ours.
func read(b *debug.BuildInfo, tag, revision string) Info {
	b = cmp.Or(b, new(debug.BuildInfo))
	i := Info{Go: b.GoVersion}
	ours := b.Main.Path == root || strings.HasPrefix(b.Main.Path, root+"/")
	v := tag
	for _, m := range append(b.Deps, &b.Main) {
		if isGozkd := m.Path == root && !ours || ours && m == &b.Main; isGozkd && v == "" {
			v = cmp.Or(m.Replace, m).Version
		}
	}
	v, i.Dirty = strings.CutSuffix(v, "+dirty")
	if commit := pseudo(v); commit != "" {
		i.Revision, v = commit, ""
	}
	if i.Number = strings.TrimPrefix(v, "v"); v == "" || v == "(devel)" {
		i.Number = Devel
	}
	for _, s := range b.Settings {
		switch {
		case !ours:
		case s.Key == "vcs.revision":
			revision = s.Value
		case s.Key == "vcs.modified":
			i.Dirty = i.Dirty || s.Value == "true"
		}
	}
	if revision != "" {
		i.Revision = revision[:min(len(revision), 12)]
	}
	return i
}

// Built returns the time of the commit that the program was built from. Without it, Built returns
// the modification time of the program's file, and without that the Unix epoch.
func Built() time.Time {
	if b, ok := debug.ReadBuildInfo(); ok {
		for _, s := range b.Settings {
			if t, err := time.Parse(time.RFC3339, s.Value); err == nil && s.Key == "vcs.time" {
				return t
			}
		}
	}
	if name, err := os.Executable(); err == nil {
		if file, err := os.Stat(name); err == nil {
			return file.ModTime()
		}
	}
	return time.Unix(0, 0)
}
