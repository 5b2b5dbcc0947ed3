//go:build linux

// Package pty is a terminal for tests: the program under test sees a real terminal, and the test
// types keys and reads the screen.
package pty
