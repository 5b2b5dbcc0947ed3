package version

import (
	"runtime/debug"
	"testing"

	"github.com/gozkd/gozkd/internal/testkit/watchdog"
)

func TestMain(m *testing.M) { watchdog.Watch(m).Run() }

func TestRead(t *testing.T) {
	module := func(path, version string) debug.Module { return debug.Module{Path: path, Version: version} }
	dep := func(version string) *debug.Module { m := module(root, version); return &m }
	replaced := &debug.Module{Path: root, Version: "v0.1.0", Replace: &debug.Module{Path: "../gozkd"}}
	vcs := func(modified string) []debug.BuildSetting {
		return []debug.BuildSetting{{Key: "vcs.revision", Value: "f70422a5f4b5c16d4f83b7a5722316a8c92da083"}, {Key: "vcs.modified", Value: modified}}
	}
	gozkd := func(version string) debug.Module { return module(root+"/cmd/gozkd", version) }
	for _, c := range []struct {
		name          string
		info          debug.BuildInfo
		tag, revision string
		want          string
	}{
		{"installed", debug.BuildInfo{Main: gozkd("v0.1.0")}, "", "", "0.1.0-go1.26.8"},
		{"clone with the tag", debug.BuildInfo{Main: gozkd("v0.1.0"), Settings: vcs("false")}, "", "", "0.1.0-f70422a5f4b5-go1.26.8"},
		{"candidate", debug.BuildInfo{Main: gozkd("v0.2.0-rc.1")}, "", "", "0.2.0-rc.1-go1.26.8"},
		{"changes after the tag", debug.BuildInfo{Main: gozkd("v0.1.0+dirty"), Settings: vcs("true")}, "", "", "0.1.0-f70422a5f4b5-dirty-go1.26.8"},
		{"a commit without a tag", debug.BuildInfo{Main: gozkd("v0.1.1-0.20261129050623-f70422a5f4b5"), Settings: vcs("false")}, "", "", "devel-f70422a5f4b5-go1.26.8"},
		{"a commit, installed", debug.BuildInfo{Main: gozkd("v0.0.0-20261129050623-f70422a5f4b5")}, "", "", "devel-f70422a5f4b5-go1.26.8"},
		{"a commit after a candidate", debug.BuildInfo{Main: gozkd("v0.2.0-rc.1.0.20261129050623-f70422a5f4b5+dirty")}, "", "", "devel-f70422a5f4b5-dirty-go1.26.8"},
		{"without a repository", debug.BuildInfo{Main: gozkd("(devel)")}, "", "", "devel-go1.26.8"},
		{"stamped", debug.BuildInfo{Main: gozkd("(devel)")}, "v0.1.0", "f70422a5f4b5c16d", "0.1.0-f70422a5f4b5-go1.26.8"},
		{"somebody else's program", debug.BuildInfo{Main: module("example.com/x", "v7.0.0"), Deps: []*debug.Module{dep("v0.1.0")}, Settings: vcs("true")}, "", "", "0.1.0-go1.26.8"},
		{"replaced", debug.BuildInfo{Main: module("example.com/x", "v7.0.0"), Deps: []*debug.Module{replaced}}, "", "", "devel-go1.26.8"},
		{"a neighbour's name", debug.BuildInfo{Main: module(root+"-fork", "v7.0.0")}, "", "", "devel-go1.26.8"},
	} {
		c.info.GoVersion = "go1.26.8"
		if got := read(&c.info, c.tag, c.revision).String(); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	if got := read(nil, "", "").Number; got != Devel {
		t.Errorf("without build information: %s", got)
	}
}

func TestInfo_Texts(t *testing.T) {
	i := Info{Number: "0.1.0", Revision: "f70422a5f4b5", Dirty: true, Go: "go1.27-devel_a2 X:jsonv2"}
	if got, want := i.String(), "0.1.0-f70422a5f4b5-dirty-go1.27-devel-a2-X-jsonv2"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	i.Go = "go1.26.8"
	if got, want := i.line("linux", "amd64"), "0.1.0 (f70422a5f4b5-dirty), go1.26.8, linux/amd64"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	i.Revision, i.Dirty = "", false
	if got, want := i.line("linux", "arm64"), "0.1.0, go1.26.8, linux/arm64"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
