//go:build unix && !linux

package server

import "syscall"

func readNow(fd uintptr, b []byte) (int, error) { return syscall.Read(int(fd), b) }

func writeNow(fd uintptr, b []byte, _, _ bool) (int, error) { return syscall.Write(int(fd), b) }
