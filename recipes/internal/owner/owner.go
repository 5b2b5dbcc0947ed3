// Package owner interprets the EphemeralOwner of a Stat.
package owner

import "math"

// IsSession reports whether an EphemeralOwner is a session. Containers and znodes with a TTL have
// special values there.
func IsSession(owner int64) bool {
	const ttl = 0xff // the first byte
	return owner != 0 && owner != math.MinInt64 && uint64(owner)>>56 != ttl
}
