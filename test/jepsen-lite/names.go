//go:build linux

package jepsenlite

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// addresses is the plan of an ensemble on loopback. Member i listens at 127.<net>.i.i and reaches
// member j at 127.<net>.i.j, where a proxy listens. Ports and names are the same everywhere, so the
// server lines stay right when a reconfig gives all members the lines of one of them.
type addresses struct {
	net                                byte
	members                            int
	peerPort, electionPort, clientPort int
}

func (a addresses) ip(from, to int) string { return fmt.Sprintf("127.%d.%d.%d", a.net, from, to) }

func (a addresses) client(id int) string {
	return net.JoinHostPort(a.ip(id, id), strconv.Itoa(a.clientPort))
}

func hostName(id int) string { return fmt.Sprintf("zk%d", id) }

// hosts returns a member's hosts file.
func (a addresses) hosts(id int) string {
	var b strings.Builder
	b.WriteString("127.0.0.1 localhost\n")
	if own, err := os.Hostname(); err == nil {
		fmt.Fprintf(&b, "127.0.0.1 %s\n", own)
	}
	for j := 1; j <= a.members; j++ {
		fmt.Fprintf(&b, "%s %s\n", a.ip(id, j), hostName(j))
	}
	return b.String()
}

// withHosts returns a command that sees hosts as /etc/hosts, in a mount namespace of its own, for
// which every user except root needs a user namespace too. The shell becomes the command, so the
// process id is the command's.
func withHosts(hosts string, command []string) *exec.Cmd {
	const script = `mount --bind "$0" /etc/hosts && exec "$@"`
	cmd := exec.Command("sh", append([]string{"-c", script, hosts}, command...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	if os.Getuid() != 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
		}
	}
	return cmd
}
