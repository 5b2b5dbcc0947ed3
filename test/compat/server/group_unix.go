//go:build unix

package server

import (
	"errors"
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
