package recipes

import (
	"time"

	"golang.org/x/sys/unix"
)

// suspended returns for how long the machine has been suspended since boot: CLOCK_BOOTTIME less
// CLOCK_MONOTONIC. Time that passes between the two readings counts as suspension. That error is on
// the safe side, and the loop keeps it small.
func suspended() time.Duration {
	const small = 100 * time.Microsecond
	var with, before time.Duration
	for range 3 {
		before = read(unix.CLOCK_MONOTONIC)
		with = read(unix.CLOCK_BOOTTIME)
		if read(unix.CLOCK_MONOTONIC)-before < small {
			break
		}
	}
	return with - before
}

func read(id int32) time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(id, &ts); err != nil {
		return 0 // both clocks exist since Linux 2.6.39
	}
	return time.Duration(ts.Nano())
}
