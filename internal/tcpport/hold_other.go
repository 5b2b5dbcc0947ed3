//go:build !unix

package tcpport

import "net"

// sharedHold: see hold_unix.go.
const sharedHold = false

// holdPort cannot reserve ports on this system.
func holdPort(net.IP, int) (number int, letGo func()) { return 0, nil }
