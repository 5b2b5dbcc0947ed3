//go:build !linux

package main

// slackenTimers is for Linux only.
func slackenTimers() {}
