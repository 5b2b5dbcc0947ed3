package server

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// These calls never wait, so the runtime need not know that one is under way: what it does to let others run meanwhile costs
// more than it saves, and its monitor wakes up for nothing.

func readNow(fd uintptr, b []byte) (int, error) {
	return transfer(unix.SYS_RECVFROM, fd, b, unix.MSG_DONTWAIT)
}

func writeNow(fd uintptr, b []byte) (int, error) {
	return transfer(unix.SYS_SENDTO, fd, b, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
}

// transfer returns 0 and a syscall.Errno, or what the system call returned and nil. b is not empty.
func transfer(call, fd uintptr, b []byte, flags uintptr) (int, error) {
	n, _, errno := syscall.RawSyscall6(call, fd, uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)), flags, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}
