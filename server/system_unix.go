//go:build linux || darwin

package server

import (
	"math"
	"net"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// fileDescriptors returns how many file descriptors the process has open and how many it may have.
// ok is false if the system does not tell.
func fileDescriptors() (open, limit int64, ok bool) {
	dir := "/dev/fd"
	if runtime.GOOS == "linux" { // where the other is a link that a container may lack
		dir = "/proc/self/fd"
	}
	open, ok = countDescriptors(dir)
	var l unix.Rlimit
	if !ok || unix.Getrlimit(unix.RLIMIT_NOFILE, &l) != nil {
		return 0, 0, false
	}
	return open, int64(min(l.Cur, math.MaxInt64)), true
}

// countDescriptors returns the number of file descriptors that a directory lists. Linux tells it as
// the size of the directory since version 6.2. To list thousands takes a millisecond, which is too
// much for a four-letter word that anybody may send.
func countDescriptors(dir string) (n int64, ok bool) {
	if info, err := os.Stat(dir); err == nil && info.Size() > 0 && runtime.GOOS == "linux" {
		return info.Size(), true
	}
	return listDescriptors(dir)
}

// listDescriptors is countDescriptors for every system.
func listDescriptors(dir string) (n int64, ok bool) {
	d, err := os.Open(dir)
	if err != nil {
		return 0, false
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	return int64(len(names)) - 1, err == nil // 1 is d itself
}

func setBacklog(l net.Listener, n int) error {
	socket, err := l.(*net.TCPListener).SyscallConn()
	if err != nil {
		return err
	}
	// To listen on a socket that listens changes the backlog.
	if controlErr := socket.Control(func(fd uintptr) { err = unix.Listen(int(fd), n) }); controlErr != nil {
		return controlErr
	}
	return err
}

func system() (name, release string) {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return runtime.GOOS, ""
	}
	return unix.ByteSliceToString(u.Sysname[:]), unix.ByteSliceToString(u.Release[:])
}
