//go:build linux

// Package pty is a terminal for tests: a program sees a real one, the test types and reads the
// screen as eyes would.
package pty
