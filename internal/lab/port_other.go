//go:build !unix

package lab

import "net"

// holdPort does nothing here.
func holdPort(net.IP, int) (letGo func()) { return nil }
