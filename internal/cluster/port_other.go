//go:build !unix

package cluster

import "net"

// sharedHold: see port_unix.go.
const sharedHold = false

// holdPort does nothing here.
func holdPort(net.IP, int) (number int, letGo func()) { return 0, nil }
