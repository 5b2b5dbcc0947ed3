//go:build unix

package cluster

import (
	"net"
	"runtime"
	"syscall"
)

// sharedHold says that one may listen on a port that is held, if both allow the address to be reused, as Go's listeners do. Then it is held
// from first to last. Other systems than Linux don't let anybody listen: there it is held between two listeners, and is
// free for the moments in which they come and go.
const sharedHold = runtime.GOOS == "linux"

// holdPort binds a port without listening on it, or with 0 a free one. The system gives it to nobody else who asks for any.
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
	syscall.ForkLock.RLock() // a child that is started now would keep the port
	fd, err := syscall.Socket(family, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fd)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return 0, nil
	}
	letGo = func() { _ = syscall.Close(fd) } // nothing was written to it
	if syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1) == nil && syscall.Bind(fd, address) == nil {
		switch own, _ := syscall.Getsockname(fd); own := own.(type) { // what fails here is no address of either kind
		case *syscall.SockaddrInet4:
			return own.Port, letGo
		case *syscall.SockaddrInet6:
			return own.Port, letGo
		}
	}
	letGo()
	return 0, nil
}
