//go:build unix && !linux

package rawio

import (
	"syscall"
	"time"
)

func read(fd uintptr, b []byte) (int, error) { return syscall.Read(int(fd), b) }

// write ignores more and last.
func write(fd uintptr, b []byte, _, _ bool) (int, error) { return syscall.Write(int(fd), b) }

// Probe does nothing.
func Probe(uintptr, time.Duration) {}

// AnswersOf returns the zero value.
func AnswersOf(uintptr) Answers { return Answers{} }

// Queues returns the zero value.
func Queues(uintptr) Queued { return Queued{} }
