package sim

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// A run hangs if all its goroutines wait for each other: the time of a bubble stands still while
// one of them waits for a mutex. A process that hangs uses no processor time, however busy the
// machine is.
const (
	hangInterval = 10 * time.Second
	hangLooks    = 18 // without a change of the processor time, so that a run hangs for three minutes
)

// runUnlessHung runs a process, and returns its output. used returns the processor time of a
// process, or -1 if nobody knows; it is called once per interval. If that is the same for hangLooks
// times, the process is made to print the stacks of its goroutines and to end.
func runUnlessHung(run *exec.Cmd, interval time.Duration, used func(pid int) int) (out []byte, hung bool, err error) {
	var b bytes.Buffer
	run.Stdout, run.Stderr = &b, &b
	if err := run.Start(); err != nil {
		return nil, false, err
	}
	ended := make(chan error, 1)
	go func() { ended <- run.Wait() }() // ends with the process, which is awaited below
	look := time.NewTicker(interval)
	defer look.Stop()
	for before, same := -1, 0; ; {
		select {
		case err := <-ended:
			return b.Bytes(), hung, err
		case <-look.C:
		}
		now := used(run.Process.Pid)
		if same++; now != before || now < 0 {
			before, same = now, 0
		}
		if same == hangLooks {
			hung = true
			if run.Process.Signal(syscall.SIGQUIT) != nil { // the system has no such signal, or the process has ended
				_ = run.Process.Kill()
			}
		}
	}
}

// processorTicks returns the processor time of a process in ticks of the system, or -1 if the
// system does not tell: only Linux does.
func processorTicks(pid int) (n int) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)) // such as "7 (a name) S 1 ...": fields 14 and 15 are the times
	fields := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	if err != nil || len(fields) < 13 {
		return -1
	}
	for _, field := range fields[11:13] {
		ticks, err := strconv.Atoi(string(field))
		if err != nil {
			return -1
		}
		n += ticks
	}
	return n
}

// sleeps names, in the environment of a process that sleeps, the file that the process makes first.
const sleeps = "GOZKD_SIM_SLEEPS"

func TestRunUnlessHung_Sleeper(t *testing.T) {
	if begun := os.Getenv(sleeps); begun != "" {
		if err := os.WriteFile(begun, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
	}
}

// A process that uses no processor time prints where it waits, and ends. One that uses some goes
// on, and one that ends by itself does not hang.
func TestRunUnlessHung(t *testing.T) {
	sleeper := func() (run *exec.Cmd, begun string) {
		run, begun = exec.Command(os.Args[0], "-test.run=^TestRunUnlessHung_Sleeper$", "-test.timeout=0"), filepath.Join(t.TempDir(), "begun")
		run.Env = append(os.Environ(), sleeps+"="+begun)
		return run, begun
	}
	const busy = 5 * hangLooks // looks
	for what, ticks := range map[string]func(looks int) int{
		"that works":                        func(looks int) int { return looks },
		"of which the system tells nothing": func(int) int { return -1 },
	} {
		looks, idle := 0, 0 // how many, and the first one from which on the processor time stays
		run, begun := sleeper()
		out, hung, err := runUnlessHung(run, time.Millisecond, func(int) int {
			looks++
			if _, err := os.Stat(begun); idle == 0 && (looks < busy || err != nil) {
				return ticks(looks)
			}
			idle = cmp.Or(idle, looks)
			return math.MaxInt
		})
		if !hung || err == nil || looks < idle+hangLooks || !bytes.Contains(out, []byte("TestRunUnlessHung_Sleeper")) {
			t.Errorf("a process %s hangs from look %d on: ended after %d looks, hung is %v, %v\n%s", what, idle, looks, hung, err, out)
		}
	}
	if processorTicks(os.Getpid()) < 0 {
		t.Skip("the system does not tell how much processor time a process uses")
	}
	run, _ := sleeper()
	if _, hung, err := runUnlessHung(run, 20*time.Millisecond, processorTicks); !hung || err == nil {
		t.Errorf("a process that sleeps: hung is %v, %v", hung, err)
	}
	ends := exec.Command(os.Args[0], "-test.run=^TestRunUnlessHung_Sleeper$")
	if _, hung, err := runUnlessHung(ends, time.Hour, processorTicks); hung || err != nil {
		t.Errorf("a process that ends: hung is %v, %v", hung, err)
	}
}
