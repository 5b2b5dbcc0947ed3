//go:build unix

package server

import (
	"errors"
	"fmt"
	"os/exec"
	"syscall"
)

// RunGroup runs cmd and ends everything that it started: an interrupted test leaves its servers.
func RunGroup(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	kill := func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.Cancel = kill
	err := cmd.Run()
	if cmd.Process == nil {
		return err
	}
	if killErr := kill(); !errors.Is(killErr, syscall.ESRCH) { // usually nothing is left
		err = errors.Join(err, killErr)
	}
	return err
}

// Pause stops the process pid with SIGSTOP until Resume. A process that has ended is no error.
func Pause(pid int) error { return send(pid, syscall.SIGSTOP) }

// Resume lets a stopped process go on.
func Resume(pid int) error { return send(pid, syscall.SIGCONT) }

func send(pid int, s syscall.Signal) error {
	if err := syscall.Kill(pid, s); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("server: send %v to process %d: %w", s, pid, err)
	}
	return nil
}
