// Package memlimit finds out how much memory this process may use, and how long its files may be.
package memlimit

import (
	"cmp"
	"io/fs"
	"math"
	"os"
	"path"
	"runtime/debug"
	"strconv"
	"strings"
)

// Available returns the smallest of these bounds in bytes: GOMEMLIMIT, what the process's resource
// limits leave, the limits of its control groups, and the memory of the machine. It returns
// math.MaxInt64 if none is known.
func Available() int64 {
	return min(debug.SetMemoryLimit(-1), available(os.DirFS("/"))) // -1 changes nothing
}

// FileSize returns how many bytes this process may write to a file (ulimit -f), or math.MaxInt64.
func FileSize() int64 { return field(os.DirFS("/"), "proc/self/limits", "Max file size") }

// available reads the bounds that Linux shows in files. On other systems there are no such files.
func available(root fs.FS) int64 {
	limit := min(cmp.Or(kib(root, "proc/meminfo", "MemTotal:"), math.MaxInt64), resources(root))
	for line := range strings.SplitSeq(text(root, "proc/self/cgroup"), "\n") {
		// 0::/group in version 2 of control groups, N:memory,...:/group in version 1.
		_, line, _ = strings.Cut(line, ":")
		controllers, group, ok := strings.Cut(line, ":")
		if !ok {
			continue
		}
		dir, file := "sys/fs/cgroup", "memory.max"
		if controllers != "" {
			if !strings.Contains(","+controllers+",", ",memory,") {
				continue
			}
			dir, file = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
		}
		// In a container the group's own directory is mounted at dir, and the path of the group,
		// which is that outside, does not exist.
		for group = path.Clean("/" + group); ; group = path.Dir(group) {
			limit = min(limit, number(strings.TrimSpace(text(root, path.Join(dir, group, file)))))
			if group == "/" {
				break
			}
		}
	}
	return limit
}

// resources returns how much memory the limits of address space (ulimit -v) and of data (ulimit -d)
// leave. Both count what the runtime has reserved besides the memory in use.
func resources(root fs.FS) int64 {
	limit := int64(math.MaxInt64)
	const status = "proc/self/status"
	for name, reserved := range map[string]string{"Max address space": "VmSize:", "Max data size": "VmData:"} {
		if n := field(root, "proc/self/limits", name); n < math.MaxInt64 {
			limit = min(limit, max(n-kib(root, status, reserved)+kib(root, status, "RssAnon:"), 1))
		}
	}
	return limit
}

// field returns the first number after a name that begins a line of a file. Of the limits of a
// resource the soft one is the first.
func field(root fs.FS, file, name string) int64 {
	for line := range strings.Lines(text(root, file)) {
		if values, ok := strings.CutPrefix(line, name); ok {
			first, _, _ := strings.Cut(strings.TrimSpace(values), " ")
			return number(first)
		}
	}
	return math.MaxInt64
}

// kib is field for a number of KiB. It returns bytes, or 0 if there is no such number.
func kib(root fs.FS, file, name string) int64 { return max(0, field(root, file, name)<<10) }

// number returns math.MaxInt64 for "max" and whatever else is not a positive number.
func number(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n <= 0 {
		return math.MaxInt64
	}
	return n
}

// text returns the text of a file, or "" if it cannot be read.
func text(root fs.FS, name string) string {
	b, _ := fs.ReadFile(root, name)
	return string(b)
}
