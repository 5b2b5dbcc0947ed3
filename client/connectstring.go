package client

import (
	"fmt"
	"net"
	"net/netip"
	"strings"

	"github.com/gozkd/gozkd/proto"
)

// DefaultPort is the port of a server whose address has no port.
const DefaultPort = "2181"

// ParseServers splits a connect string such as host[:port],[::1]:2181,.../chroot into the fields of
// Config. Servers without a port get DefaultPort. chroot is "" if there is none.
func ParseServers(connect string) (servers []string, chroot string, err error) {
	if scheme, _, isURL := strings.Cut(connect, "://"); isURL {
		return nil, "", fmt.Errorf("client: connect string %q: want host:port without %s://", connect, scheme)
	}
	list := connect
	if i := strings.IndexByte(connect, '/'); i >= 0 {
		list, chroot = connect[:i], connect[i:]
		if chroot == "/" {
			chroot = ""
		} else if err := proto.ValidatePath(chroot); err != nil {
			return nil, "", fmt.Errorf("client: connect string %q: %w", connect, err)
		}
	}
	for s := range strings.SplitSeq(list, ",") {
		address, err := parseServer(strings.TrimSpace(s))
		if err != nil {
			return nil, "", fmt.Errorf("client: connect string %q: %w", connect, err)
		}
		servers = append(servers, address)
	}
	return servers, chroot, nil
}

func parseServer(s string) (string, error) {
	s = strings.TrimSuffix(s, ":"+DefaultPort) // ZooKeeper, too, takes ::1:2181 for a port of ::1
	host, port := s, DefaultPort
	switch bare, err := netip.ParseAddr(s); {
	case strings.ContainsAny(s, "; \t"):
		return "", fmt.Errorf("%q: want commas between servers", s)
	case err == nil && bare.Is6(): // an IPv6 address without brackets, whose colons do not mean a port
	case strings.HasPrefix(s, "[") && strings.HasSuffix(s, "]"):
		host = s[1 : len(s)-1]
	case strings.ContainsRune(s, ':'):
		var err error
		if host, port, err = net.SplitHostPort(s); err != nil {
			return "", err
		}
	}
	if host == "" {
		return "", fmt.Errorf("%q names no host", s)
	}
	if n, err := net.LookupPort("tcp", port); err != nil || n == 0 {
		return "", fmt.Errorf("%q: %q is no port", s, port)
	}
	return net.JoinHostPort(host, port), nil
}
