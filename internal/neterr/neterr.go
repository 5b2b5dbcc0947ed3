// Package neterr tells errors of connections apart, and says in a few words what they are and what
// to do about them. On Windows the constants of package syscall, such as ECONNREFUSED, are invented
// numbers that no socket returns.
package neterr

import (
	"errors"
	"runtime"
	"slices"
	"syscall"
)

// onWindows has the numbers of Windows for the errors of sockets (WSAECONNREFUSED and so on). A
// connection that the other side has reset may be WSAECONNABORTED there, too.
var onWindows = map[syscall.Errno][]syscall.Errno{
	syscall.EADDRINUSE: {10048}, syscall.EADDRNOTAVAIL: {10049}, syscall.ECONNRESET: {10053, 10054},
	syscall.EPIPE: {10058}, syscall.ECONNREFUSED: {10061},
}

// Is reports whether err is an error of a socket: EADDRINUSE, EADDRNOTAVAIL, ECONNRESET, EPIPE or
// ECONNREFUSED. Errors of networks in memory, which have the numbers of package syscall on Windows
// too, are recognized as well.
func Is(err error, errno syscall.Errno) bool { return is(runtime.GOOS, err, errno) }

func is(system string, err error, errno syscall.Errno) bool {
	number := func(n syscall.Errno) bool { return errors.Is(err, n) }
	return number(errno) || system == "windows" && slices.ContainsFunc(onWindows[errno], number)
}
