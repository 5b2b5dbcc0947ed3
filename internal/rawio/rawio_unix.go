//go:build unix && !linux

package rawio

import "syscall"

// Read reads what has arrived.
func Read(fd uintptr, b []byte) (int, error) { return syscall.Read(int(fd), b) }

// Write writes what the socket takes. It ignores more and last.
func Write(fd uintptr, b []byte, _, _ bool) (int, error) { return syscall.Write(int(fd), b) }

// Queues returns the zero value.
func Queues(uintptr) Queued { return Queued{} }
