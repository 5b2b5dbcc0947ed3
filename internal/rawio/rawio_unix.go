//go:build unix && !linux

package rawio

import "syscall"

func read(fd uintptr, b []byte) (int, error) { return syscall.Read(int(fd), b) }

// write ignores more and last.
func write(fd uintptr, b []byte, _, _ bool) (int, error) { return syscall.Write(int(fd), b) }

// Queues returns the zero value.
func Queues(uintptr) Queued { return Queued{} }
