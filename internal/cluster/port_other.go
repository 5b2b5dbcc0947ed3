//go:build !unix

package cluster

import "net"

// sharedHold: see port_unix.go.
const sharedHold = false

// holdPort cannot reserve ports on this system.
func holdPort(net.IP, int) (number int, letGo func()) { return 0, nil }
