package main

import (
	"bufio"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// dropProgramPages unmaps the program's file. The pages that are used come back at once, from the
// system's cache; only the start needed the others, half of an empty server's resident memory. A
// mapping with changed pages, such as one with relocations, is left alone.
func dropProgramPages() {
	maps, err := os.Open("/proc/self/smaps")
	if err != nil {
		return // nothing depends on this
	}
	defer func() { _ = maps.Close() }()
	var from, to uintptr // of the mapping; 0, 0 if it must be left alone
	lines := bufio.NewScanner(maps)
	lines.Buffer(make([]byte, 512), 512) // the system must not measure the heap, which comes next
	for lines.Scan() {
		switch fields := strings.Fields(lines.Text()); {
		case strings.Contains(fields[0], "-"): // addresses, permissions, offset, device, inode, file
			if len(fields) < 6 {
				return // memory without a file follows that of the program
			}
			from, to = 0, 0
			if fields[1] == "r-xp" || fields[1] == "r--p" {
				_, _ = fmt.Sscanf(fields[0], "%x-%x", &from, &to) // the system has written it so
			}
		case fields[0] == "Anonymous:" && fields[1] == "0" && to > 0:
			_, _, _ = unix.Syscall(unix.SYS_MADVISE, from, to-from, unix.MADV_DONTNEED) // if it fails, the pages stay
		}
	}
}
