// Package memberid maps the numbers of servers, as in server.N and myid, to the ids that the
// program uses. An id is the number, except that the server with the number 0 has the id Zero: raft
// knows no member 0, and 0 means "none" in many places. Ids stay inside the program, its files and
// the messages between members. Whatever people and other programs read has the number.
package memberid

import (
	"fmt"
	"strconv"
)

const (
	// MaxNumber is the largest number of a server. A znode owner whose top byte is 255 is a time to
	// live instead of a session. Source: ZooKeeper EphemeralType.
	MaxNumber = 254
	// Zero is the id of the server with the number 0, and the largest id.
	Zero = 255
)

// Number returns the number of the server with an id. Number returns 0 for the id 0 too.
func Number[T ~int | ~uint8 | ~uint64](id T) T {
	if uint64(id) == Zero {
		return 0
	}
	return id
}

// Numbers returns the numbers of the servers with ids, in their order.
func Numbers(ids []uint64) []uint64 {
	numbers := make([]uint64, len(ids))
	for i, id := range ids {
		numbers[i] = Number(id)
	}
	return numbers
}

// NumberOrNone returns the number of the server with an id, or -1 for the id 0, which is none.
func NumberOrNone[T ~int | ~uint64](id T) int {
	if id == 0 {
		return -1
	}
	return int(Number(id))
}

// Of returns the id of the server with a number, or 0 if the number is not 0 to MaxNumber.
func Of[T ~int | ~int64 | ~uint64](number T) uint64 {
	switch {
	case number == 0:
		return Zero
	case number < 0 || uint64(number) > MaxNumber:
		return 0
	}
	return uint64(number)
}

// Flag is the flag.Value of an id. Its text is a number. 0 stands for a flag that is not set.
type Flag struct{ ID *uint64 }

// Set sets the id to that of the server with a number.
func (f Flag) Set(text string) error {
	number, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		number = -1
	}
	if *f.ID = Of(number); *f.ID == 0 {
		return fmt.Errorf("is %q; allowed: the number of a server, 0 to %d", text, MaxNumber)
	}
	return nil
}

// String returns the number, or "" if the flag is not set.
func (f Flag) String() string {
	if f.ID == nil || *f.ID == 0 {
		return ""
	}
	return strconv.FormatUint(Number(*f.ID), 10)
}
