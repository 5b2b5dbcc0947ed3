//go:build !unix

package gozk

import "os/exec"

// runGroup runs cmd. On this system an interrupted test leaves its servers behind.
func runGroup(cmd *exec.Cmd) error { return cmd.Run() }
