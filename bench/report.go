//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/compat/install"
)

// progress prints to standard error.
func progress(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }

// machine describes the machine. dir is where the servers' data goes.
func machine(dir string) string {
	var uts unix.Utsname
	must.Do(unix.Uname(&uts))
	var fs unix.Statfs_t
	must.Do(unix.Statfs(dir, &fs))
	if fs.Type == unix.TMPFS_MAGIC {
		must.Failf("%s is in memory, where an fsync costs nothing: set TMPDIR to a directory on a disk", dir)
	}
	gogc := os.Getenv("GOGC")
	if gogc == "" {
		gogc = "unset"
	}
	return fmt.Sprintf("%s, %d processors; Linux %s; file system type %#x; %s, GOGC %s; %s", processor(), runtime.NumCPU(),
		unix.ByteSliceToString(uts.Release[:]), fs.Type, runtime.Version(), gogc, javaVersion())
}

// conditions returns the conditions that are stored beside the figures.
func (s *settings) conditions(commit string) conditions {
	return conditions{
		Commit: commit, Rounds: s.rounds, Seconds: s.seconds.Seconds(), Warm: s.warm.Seconds(), Znodes: s.znodes, Sessions: s.sessions, Kills: s.kills,
	}
}

// commit returns the commit of the tree, and notes local changes.
func commit(ctx context.Context) string {
	root := install.Root(ctx)
	id, err := exec.CommandContext(ctx, "git", "-C", root, "rev-parse", "--short=12", "HEAD").Output()
	if err != nil {
		return "unknown" // not from a repository, or no git here
	}
	changed := must.Get(exec.CommandContext(ctx, "git", "-C", root, "status", "--porcelain", "--untracked-files=no", "--", "*.go", "go.mod").Output())
	s := strings.TrimSpace(string(id))
	if len(changed) > 0 {
		s += " with changes"
	}
	return s
}

func processor() string {
	if all, err := must.Get(procfs.NewDefaultFS()).CPUInfo(); err == nil && len(all) > 0 && all[0].ModelName != "" {
		return all[0].ModelName
	}
	return runtime.GOARCH
}

func javaVersion() string {
	out, err := exec.Command("java", "-version").CombinedOutput()
	if err != nil {
		return "no java"
	}
	line, _, _ := strings.Cut(string(out), "\n")
	return line
}

// median returns the middle of v, or the mean of the middle two. It sorts v, which is not empty.
func median[T int64 | float64 | time.Duration](v []T) T {
	slices.Sort(v)
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

func micros(d time.Duration) string {
	us := float64(d) / float64(time.Microsecond)
	switch {
	case us < 10:
		return fmt.Sprintf("%.2f", us)
	case us < 1000:
		return fmt.Sprintf("%.0f", us)
	}
	return thousands(us)
}

// thousands prints a whole number with thousands separators.
func thousands(v float64) string {
	s := fmt.Sprintf("%.0f", v)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
