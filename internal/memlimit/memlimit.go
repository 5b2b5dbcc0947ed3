// Package memlimit finds out how much memory this process may use.
package memlimit

import (
	"bufio"
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

// available reads the bounds that Linux shows in files. On other systems there are no such files.
func available(root fs.FS) int64 {
	limit := min(machine(root), resources(root))
	for line := range lines(root, "proc/self/cgroup") {
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
			for text := range lines(root, path.Join(dir, group, file)) {
				limit = min(limit, number(text))
			}
			if group == "/" {
				break
			}
		}
	}
	return limit
}

func machine(root fs.FS) int64 {
	for line := range lines(root, "proc/meminfo") {
		if kib, ok := strings.CutPrefix(line, "MemTotal:"); ok {
			if n := number(strings.TrimSpace(strings.TrimSuffix(kib, "kB"))); n < math.MaxInt64>>10 {
				return n << 10
			}
		}
	}
	return math.MaxInt64
}

// resources returns how much memory the limits of address space (ulimit -v) and of data (ulimit -d)
// leave. Both count what the runtime has reserved besides the memory in use.
func resources(root fs.FS) int64 {
	limit := int64(math.MaxInt64)
	var pages [7]int64 // size, resident, shared, text, libraries, data and more; what is missing is 0
	for line := range lines(root, "proc/self/statm") {
		for i, field := range strings.Fields(line) {
			if n := number(field); i < len(pages) && n < math.MaxInt64 {
				pages[i] = n
			}
		}
	}
	size, used, data := pages[0], pages[1]-pages[2], pages[5]
	for line := range lines(root, "proc/self/limits") {
		for name, reserved := range map[string]int64{"Max address space": size, "Max data size": data} {
			if values, ok := strings.CutPrefix(line, name); ok {
				soft, _, _ := strings.Cut(strings.TrimSpace(values), " ")
				if n := number(soft); n < math.MaxInt64 {
					limit = min(limit, max(n-(reserved-used)*int64(os.Getpagesize()), 1))
				}
			}
		}
	}
	return limit
}

// number returns math.MaxInt64 for "max" and whatever else is not a positive number.
func number(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n <= 0 {
		return math.MaxInt64
	}
	return n
}

// lines ranges over the lines of a file. A file that cannot be read has none.
func lines(root fs.FS, name string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		f, err := root.Open(name)
		if err != nil {
			return
		}
		defer f.Close()
		for s := bufio.NewScanner(f); s.Scan(); {
			if !yield(s.Text()) {
				return
			}
		}
	}
}
