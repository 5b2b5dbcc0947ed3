package server

import (
	"net"
	"testing"

	"golang.org/x/sys/unix"
)

func TestListenBacklog(t *testing.T) {
	s, err := New(Config{ListenBacklog: 7})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	socket, err := s.ports.plain.Listener().(*net.TCPListener).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var info *unix.TCPInfo
	if controlErr := socket.Control(func(fd uintptr) { info, err = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO) }); controlErr != nil || err != nil {
		t.Fatal(controlErr, err)
	}
	if info.Sacked != 7 { // what it holds for a socket that listens
		t.Errorf("the backlog is %d", info.Sacked)
	}
}
