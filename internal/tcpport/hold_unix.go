//go:build unix

package tcpport

import (
	"net"
	"runtime"
	"syscall"
)

// sharedHold reports whether a process can listen on a port that is reserved, if both sockets allow
// the address to be reused, as Go's listeners do. Then a port is reserved all the time. Systems
// other than Linux refuse the listener. There a port is reserved only while nobody listens on it,
// and is free for a moment when a listener opens or closes.
const sharedHold = runtime.GOOS == "linux"

// holdPort binds a port without listening on it; for 0 it binds a free port. The system gives a
// bound port to no other program.
func holdPort(ip net.IP, number int) (bound int, letGo func()) {
	var address syscall.Sockaddr
	family := syscall.AF_INET6
	if v4 := ip.To4(); v4 != nil {
		family = syscall.AF_INET
		address = &syscall.SockaddrInet4{Port: number, Addr: [4]byte(v4)}
	} else if v6 := ip.To16(); v6 != nil {
		address = &syscall.SockaddrInet6{Port: number, Addr: [16]byte(v6)}
	} else {
		return 0, nil
	}
	syscall.ForkLock.RLock() // a child process started now would inherit the port
	fd, err := syscall.Socket(family, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fd)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return 0, nil
	}
	letGo = func() { _ = syscall.Close(fd) } // the socket carried no data
	if syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1) == nil && syscall.Bind(fd, address) == nil {
		switch own, _ := syscall.Getsockname(fd); own := own.(type) { // after an error own is nil
		case *syscall.SockaddrInet4:
			return own.Port, letGo
		case *syscall.SockaddrInet6:
			return own.Port, letGo
		}
	}
	letGo()
	return 0, nil
}
