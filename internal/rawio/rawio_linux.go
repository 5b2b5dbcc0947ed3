package rawio

import (
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

func read(fd uintptr, b []byte) (int, error) {
	if unsafe.SliceData(b) == &Sink[0] {
		return transfer(unix.SYS_RECVFROM, fd, b, unix.MSG_DONTWAIT|unix.MSG_TRUNC)
	}
	return transfer(unix.SYS_RECVFROM, fd, b, unix.MSG_DONTWAIT)
}

// write sends the end of the stream, with last, in the same packet as b. A close would reset the
// connection, without these bytes, if something that the peer sent was not read.
func write(fd uintptr, b []byte, more, last bool) (int, error) {
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

func queues(fd uintptr) (q Queued) {
	q.Unread, _ = unix.IoctlGetInt(int(fd), unix.TIOCINQ) // these fail if fd is no stream
	q.Unsent, _ = unix.IoctlGetInt(int(fd), unix.TIOCOUTQ)
	return q
}

func probe(fd uintptr, every time.Duration) {
	const most, longest = 127, 32767 // of Linux; after so many the connection breaks
	on := 0
	if every > 0 {
		on = 1
		seconds := min(max(1, int(every/time.Second)), longest)
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, seconds) // these fail if fd is no TCP
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, seconds)
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_KEEPCNT, most)
	}
	_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_KEEPALIVE, on)
}

func answers(fd uintptr) Answers {
	info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
	if err != nil {
		return Answers{}
	}
	const established = 1
	return Answers{
		Known: true, Ago: time.Duration(info.Last_ack_recv) * time.Millisecond,
		Unanswered: int(max(info.Probes, info.Retransmits)), Ended: info.State != established, HasRoom: info.Rcv_wnd >= info.Advmss,
	}
}

// transfer returns 0 and a syscall.Errno, or the result of the system call and nil. b is not empty.
func transfer(call, fd uintptr, b []byte, flags uintptr) (int, error) {
	n, _, errno := syscall.RawSyscall6(call, fd, uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)), flags, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}
