//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// printTable prints a Markdown table to standard output, aligned so that it reads well as text too.
func printTable(title string, head []string, rows [][]string) {
	width := make([]int, len(head))
	for _, row := range append([][]string{head}, rows...) {
		for i, cell := range row {
			width[i] = max(width[i], len([]rune(cell)))
		}
	}
	line := func(row []string) {
		for i, cell := range row {
			fmt.Printf("| %s%s ", cell, strings.Repeat(" ", width[i]-len([]rune(cell))))
		}
		fmt.Println("|")
	}
	fmt.Printf("\n### %s\n\n", title)
	line(head)
	rule := make([]string, len(head))
	for i := range rule {
		rule[i] = strings.Repeat("-", max(width[i], 3))
	}
	line(rule)
	for _, row := range rows {
		line(row)
	}
}

// progress says on standard error what is going on.
func progress(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }

// printMachine says what the figures were measured on. dir is where the servers' data goes.
func printMachine(dir string) error {
	var uts unix.Utsname
	if err := unix.Uname(&uts); err != nil {
		return fmt.Errorf("uname: %w", err)
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return fmt.Errorf("statfs %s: %w", dir, err)
	}
	if fs.Type == unix.TMPFS_MAGIC {
		return fmt.Errorf("%s is in memory, where an fsync costs nothing: set TMPDIR to a directory on a disk", dir)
	}
	gogc := os.Getenv("GOGC")
	if gogc == "" {
		gogc = "unset"
	}
	fmt.Printf("%s, %d processors; Linux %s; file system type %#x; %s, GOGC %s; %s\n", processor(), runtime.NumCPU(),
		unix.ByteSliceToString(uts.Release[:]), fs.Type, runtime.Version(), gogc, javaVersion())
	return nil
}

func processor() string {
	b, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	for line := range strings.Lines(string(b)) {
		if key, value, _ := strings.Cut(line, ":"); strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
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

// median returns the middle of v, which is not empty, or the mean of the two middle ones; v is sorted.
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

func millis(d time.Duration) string { return fmt.Sprintf("%.1f", float64(d)/float64(time.Millisecond)) }

// thousands prints a whole number with a comma before each group of three digits.
func thousands(v float64) string {
	s := fmt.Sprintf("%.0f", v)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func mib(bytes int64) string { return thousands(float64(bytes) / (1 << 20)) }
