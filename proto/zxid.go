package proto

import "strconv"

// Zxid is the number of a transaction: the epoch in the high 32 bits, a counter in the low 32 bits.
// Clients compare zxids as signed 64-bit numbers.
type Zxid int64

// NoZxid is in the header of events without a transaction (setWatches) and UNIMPLEMENTED replies.
const NoZxid Zxid = -1

// MakeZxid joins epoch and counter.
func MakeZxid(epoch, counter uint32) Zxid { return Zxid(int64(epoch)<<32 | int64(counter)) }

// Epoch returns the high half.
func (z Zxid) Epoch() uint32 { return uint32(uint64(z) >> 32) }

// Counter returns the low half.
func (z Zxid) Counter() uint32 { return uint32(uint64(z)) }

// Next returns the zxid after z. If the counter would overflow, a new epoch begins.
func (z Zxid) Next() Zxid {
	if z.Counter() == 1<<32-1 {
		return z.NextEpoch() + 1
	}
	return z + 1
}

// NextEpoch returns the zxid before the first transaction of the next epoch, with counter 0.
func (z Zxid) NextEpoch() Zxid { return MakeZxid(z.Epoch()+1, 0) }

// String returns the zxid as ZooKeeper prints it, 0x and lower-case hex.
func (z Zxid) String() string { return "0x" + strconv.FormatUint(uint64(z), 16) }

// SessionID identifies a session; 0 is none. It is opaque to clients.
type SessionID int64

// String returns the id as ZooKeeper prints it, unsigned hex with 0x.
func (s SessionID) String() string { return "0x" + strconv.FormatUint(uint64(s), 16) }
