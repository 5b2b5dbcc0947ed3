//go:build unix

package gozk

import (
	"errors"
	"os/exec"
	"syscall"
)

// runGroup runs cmd and leaves nothing behind that it started: a test that is cut off leaves its servers.
func runGroup(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	kill := func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.Cancel = kill
	err := cmd.Run()
	if cmd.Process == nil {
		return err
	}
	if killErr := kill(); !errors.Is(killErr, syscall.ESRCH) { // the usual case: nobody is left
		err = errors.Join(err, killErr)
	}
	return err
}
