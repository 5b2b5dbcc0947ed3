//go:build linux || darwin

package accept

import (
	"net"
	"syscall"
)

// maxSpare bounds how many of the file descriptors that the process may have are not for accepted
// connections: an eighth.
const maxSpare = 128

// HasRoom reports whether an accepted connection leaves enough file descriptors for files and for
// connections to others. The system gives the lowest free descriptor, so one of the last shows that
// hardly any is left.
func HasRoom(conn net.Conn) bool {
	socket, ok := conn.(syscall.Conn)
	if !ok {
		return true // in memory
	}
	raw, err := socket.SyscallConn()
	var limit syscall.Rlimit
	if err != nil || syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return true // the first read finds what is wrong
	}
	room := true
	_ = raw.Control(func(fd uintptr) { room = uint64(fd) < limit.Cur-min(limit.Cur/8, maxSpare) })
	return room
}
