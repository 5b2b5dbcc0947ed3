//go:build unix && !linux

package rawio

import (
	"syscall"
	"time"
)

func read(fd uintptr, b []byte) (int, error) { return syscall.Read(int(fd), b) }

// write ignores more and last.
func write(fd uintptr, b []byte, _, _ bool) (int, error) { return syscall.Write(int(fd), b) }

func probe(uintptr, time.Duration) {}

func answers(uintptr) Answers { return Answers{} }

func queues(uintptr) Queued { return Queued{} }
