package rawio

import (
	"cmp"
	"os"

	"golang.org/x/sys/unix"
)

// Waiter waits for many sockets at once. The runtime waits for a Waiter as for one socket.
type Waiter struct {
	fd     int // an epoll set
	file   *os.File
	events [128]unix.EpollEvent
}

// NewWaiter returns a Waiter for no sockets.
func NewWaiter() (*Waiter, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, err
	}
	if err := unix.SetNonblock(fd, true); err != nil { // otherwise the runtime does not wait for it
		_ = unix.Close(fd) // nothing is in it
		return nil, err
	}
	return &Waiter{fd: fd, file: os.NewFile(uintptr(fd), "epoll")}, nil
}

// Add makes the next Wait that finds bytes in the socket, or its end, report its descriptor once.
// again: the socket was added before. Close must not be called meanwhile.
func (w *Waiter) Add(c *Conn, again bool) (socket int, err error) {
	op := unix.EPOLL_CTL_ADD
	if again {
		op = unix.EPOLL_CTL_MOD
	}
	closed := c.rc.Control(func(fd uintptr) {
		socket = int(fd)
		once := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLRDHUP | unix.EPOLLONESHOT, Fd: int32(fd)}
		err = unix.EpollCtl(w.fd, op, socket, &once)
	})
	return socket, cmp.Or(closed, err)
}

// Wait waits until there are sockets to report, and calls report for each, or until Close. Another
// socket than that which was added may have the descriptor by then.
func (w *Waiter) Wait(report func(socket int)) error {
	conn, err := w.file.SyscallConn()
	if err != nil {
		return err
	}
	n := 0
	err = conn.Read(func(fd uintptr) bool {
		n, _ = unix.EpollWait(int(fd), w.events[:], 0) // does not wait, so no signal interrupts it
		return n > 0
	})
	for i := range n {
		report(int(w.events[i].Fd))
	}
	return err
}

// Close ends the Waiter.
func (w *Waiter) Close() { _ = w.file.Close() } // nothing can be lost
