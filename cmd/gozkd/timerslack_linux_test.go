package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A server starts again with its timer slack, once and as the same process, unless whoever started
// it has chosen another.
func TestTimerSlack(t *testing.T) {
	const own = "GOZKD_TEST_OWN_PROCESS"
	get := func() int {
		slack, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
		if err != nil {
			t.Skip("this system has no timer slack:", err)
		}
		return slack
	}
	if os.Getenv(own) != "" {
		slackenTimers()
		fmt.Printf("slack %d pid %d env %q\n", get(), os.Getpid(), os.Getenv("_GOZKD_STARTED_AGAIN"))
		return
	}
	runtime.LockOSThread() // not unlocked: the thread ends with this goroutine
	for inherited, want := range map[int]int{defaultTimerSlack: timerSlack, 20_000: 20_000, 77_000: 77_000} {
		err := unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(inherited), 0, 0, 0)
		if err != nil || get() != inherited {
			t.Skip("this system does not set a timer slack:", err)
		}
		var out strings.Builder
		program := exec.Command(os.Args[0], "-test.run=^TestTimerSlack$")
		program.Env, program.Stdout = append(os.Environ(), own+"=1"), &out
		if err := program.Run(); err != nil {
			t.Fatal(err)
		}
		all := fmt.Sprintf("slack %d pid %d env %q", want, program.Process.Pid, "")
		if first, _, _ := strings.Cut(out.String(), "\n"); first != all {
			t.Errorf("with a slack of %d: %q, want %q", inherited, first, all)
		}
	}
}
