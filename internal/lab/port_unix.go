//go:build unix

package lab

import (
	"net"
	"syscall"
)

// holdPort binds a port without listening on it. Listeners of this process come through, since they too allow the address to be
// reused; the system gives the port to nobody who asks for any.
func holdPort(ip net.IP, number int) (letGo func()) {
	var address syscall.Sockaddr
	family := syscall.AF_INET6
	if v4 := ip.To4(); v4 != nil {
		family = syscall.AF_INET
		address = &syscall.SockaddrInet4{Port: number, Addr: [4]byte(v4)}
	} else if v6 := ip.To16(); v6 != nil {
		address = &syscall.SockaddrInet6{Port: number, Addr: [16]byte(v6)}
	} else {
		return nil
	}
	fd, err := syscall.Socket(family, syscall.SOCK_STREAM, 0)
	if err != nil {
		return nil
	}
	syscall.CloseOnExec(fd)
	if syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1) != nil || syscall.Bind(fd, address) != nil {
		_ = syscall.Close(fd) // nothing was written to it
		return nil
	}
	return func() { _ = syscall.Close(fd) }
}
