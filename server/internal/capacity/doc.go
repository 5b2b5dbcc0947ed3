// Package capacity decides how large the state may become, so that an ensemble that is full refuses
// growth and does not die. See docs/adr/0014-full-refuses-growth.md.
//
// A [Gauge] computes the ability of this server. Each member reports its ability to the leader,
// whose [Board] computes the limit that the leader proposes. Memory and disks are passed in.
package capacity

import (
	"cmp"
	"math"
)

// Ability is the largest weight of a state that a server, or an ensemble, can hold.
type Ability struct {
	Weight int64 // 0: any, without a Cause
	Cause  Cause // is used up at Weight
	Member uint8 // whose ability it is; 0: that of the disks of a majority
}

// Cause is the resource of which a server has too little. Its values are datatree.LimitCause's.
type Cause uint8

// The causes.
const (
	Nothing Cause = iota
	Memory
	Disk
)

// Counts reports whether the ability counts for a state of that weight, which takes more than a
// quarter of it. Other states need no limit yet.
func (a Ability) Counts(weight int64) bool {
	return a.Cause != Nothing && weight > a.Weight/4
}

// Least returns the smaller ability.
func (a Ability) Least(b Ability) Ability {
	if b.most() < a.most() {
		return b
	}
	return a
}

// most returns the largest weight of a state that can be held.
func (a Ability) most() int64 { return cmp.Or(a.Weight, math.MaxInt64) }
