package server

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// These calls never block, so the runtime is not told about them: letting other goroutines run
// meanwhile would cost more than it saves, and the runtime's monitor would wake up for nothing.

func readNow(fd uintptr, b []byte) (int, error) {
	return transfer(unix.SYS_RECVFROM, fd, b, unix.MSG_DONTWAIT)
}

// writeNow sends the last bytes together with the end of the stream, in one packet. The end is not
// left to close, because that resets the connection, without these bytes, if something that the
// client sent was not read.
func writeNow(fd uintptr, b []byte, more, last bool) (int, error) {
	const flags = unix.MSG_DONTWAIT | unix.MSG_NOSIGNAL
	switch {
	case more:
		return transfer(unix.SYS_SENDTO, fd, b, flags|unix.MSG_MORE)
	case !last:
		return transfer(unix.SYS_SENDTO, fd, b, flags)
	}
	n, err := transfer(unix.SYS_SENDTO, fd, b, flags|unix.MSG_MORE)
	if n == len(b) {
		// Fails if the connection is lost, and then only the close remains to be done.
		_, _, _ = syscall.RawSyscall(unix.SYS_SHUTDOWN, fd, unix.SHUT_WR, 0)
	}
	return n, err
}

// transfer returns 0 and a syscall.Errno, or what the system call returned and nil. b is not empty.
func transfer(call, fd uintptr, b []byte, flags uintptr) (int, error) {
	n, _, errno := syscall.RawSyscall6(call, fd, uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)), flags, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}
