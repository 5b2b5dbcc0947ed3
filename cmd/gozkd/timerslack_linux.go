package main

import (
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	// timerSlack is by how many nanoseconds Linux may delay a server's timers, so that one wake-up
	// serves several. While a processor is in use, the Go runtime's monitor thread sleeps for 20 µs
	// at a time, and takes the processor away from a thread that is longer in a system call. With
	// Linux's default, nearly each sync of the log loses its processor. Meanwhile nobody may look
	// after the network, so the slack also bounds for how long a slow disk holds up clients.
	timerSlack = 250_000
	// defaultTimerSlack is Linux's. Whoever starts the server may have chosen another.
	defaultTimerSlack = 50_000
)

// slackenTimers starts the program again with timerSlack, in the same process. A thread inherits
// the slack of the thread that starts it, and the monitor starts before any code of a program. If
// slackenTimers returns, the program has another slack than the default, or must do with it.
func slackenTimers() {
	const again = "_GOZKD_STARTED_AGAIN" // for systems on which a new program would begin with the default
	if os.Getenv(again) != "" {
		_ = os.Unsetenv(again) // it is set, so its name is valid
		return
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	slack, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
	program, notFound := os.Executable()
	if err != nil || slack != defaultTimerSlack || notFound != nil {
		return
	}
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, timerSlack, 0, 0, 0)
	_ = syscall.Exec(program, os.Args, append(os.Environ(), again+"=1")) // returns only if it is not allowed
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, defaultTimerSlack, 0, 0, 0)
}
