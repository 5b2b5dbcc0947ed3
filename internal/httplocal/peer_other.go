//go:build !linux

package httplocal

import "net/netip"

// fromService is false where the owner of a socket is not known.
func fromService(_, _ netip.AddrPort) bool { return false }
