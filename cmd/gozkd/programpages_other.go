//go:build !linux

package main

// dropProgramPages is for Linux only.
func dropProgramPages() {}
