package capacity

import "math"

// What a connection of a client takes at rest, in bytes: the stack of its reader, its socket and
// its places in tables; and with TLS besides.
const (
	ConnectionCost = 8 << 10
	TLSCost        = 10 << 10
)

const (
	// fewConnections and a sixteenth of the limit are always for clients: some have to delete.
	fewConnections = 100
	// ownCost is the memory of a server without data and clients.
	ownCost = 6 << 20
	// garbage is the memory that a small heap needs besides live objects: for garbage, for the gaps
	// between live objects, and for the collector.
	garbage = 11 << 20
)

// together returns how many bytes state, connections and watches of a server may take: an eighth
// more than allowed, which is three quarters of the memory, if that leaves room for garbage.
func together(allowed int64) int64 {
	return min(allowed/8*9, max(allowed, allowed/3*4-garbage)) - ownCost
}

// always returns how many bytes are for connections and watches whatever the state weighs.
func always(allowed int64) int64 { return max(allowed/16, fewConnections*ConnectionCost) }

// RoomBeside returns the largest weight of a state that leaves room for clients with sessions,
// whose connections and watches take that many bytes, if all end, and come back. Few have room in
// any case, and so has an eighth of allowed for the state. New sessions alone never leave the state
// without room: they are refused while a fifteenth of the rest is free.
func RoomBeside(allowed, connections, watches int64) int64 {
	used := connections + watches
	if used <= always(allowed) {
		return math.MaxInt64
	}
	return max(allowed/8, together(allowed)-max(used/int64(Returning)*16, watches/3*4))
}

// WatchLimit returns how much of a CrowdLimit watches may take. The rest is for connections, so
// that the watches of a few clients keep nobody out.
func WatchLimit(limit int64) int64 { return limit / 4 * 3 }

// Newcomer is the purpose of a new connection. Its value is how many sixteenths of a CrowdLimit may
// be in use when it comes.
type Newcomer int64

// The newcomers. A client that comes back to its session comes before a client without a session,
// and a connection that has said nothing yet may be that of a monitor.
const (
	NewSession    Newcomer = 14
	Returning     Newcomer = 15
	NewConnection Newcomer = 16
)

// CrowdLimit returns how many bytes the connections and watches of a server may take beside a state
// of that weight. allowed is [Gauge.Allowed]; 0: no bound. They may take three quarters of it, and
// with the state up to an eighth more than it, so that a state which is full of data leaves room
// for clients. If the server loads its state, only those that are always let in may wait for it.
func CrowdLimit(allowed, weight int64, loading bool) int64 {
	if allowed <= 0 {
		return math.MaxInt64
	}
	least := always(allowed)
	if loading {
		return least
	}
	return max(least, min(allowed/4*3, together(allowed)-weight))
}

// Fits reports whether there is room for a newcomer while that much is in use.
func (n Newcomer) Fits(used, limit int64) bool { return used <= limit/16*int64(n) }

// Resumes reports whether a server that has refused newcomers is no longer crowded.
func Resumes(used, limit int64) bool { return used+ConnectionCost <= limit/16*int64(NewSession) }
