package recipes

import (
	"time"

	"golang.org/x/sys/unix"
)

// suspended is how long the machine has been suspended since it was booted: the clock that counts it less the one that does not.
// What passes between looking at the one and the other is mistaken for suspension; that errs to the safe side, and is kept small.
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
		return 0 // both clocks have been there since Linux 2.6.39
	}
	return time.Duration(ts.Nano())
}
