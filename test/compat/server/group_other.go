//go:build !unix

package server

import (
	"errors"
	"os/exec"
)

// RunGroup runs cmd. On this system an interrupted test leaves its servers behind.
func RunGroup(cmd *exec.Cmd) error { return cmd.Run() }

// Pause fails: this system cannot stop a process for a while.
func Pause(int) error { return errors.ErrUnsupported }

// Resume fails as Pause does.
func Resume(int) error { return errors.ErrUnsupported }
