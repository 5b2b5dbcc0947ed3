package server

import (
	"cmp"
	"slices"
	"unicode/utf16"

	"github.com/gozkd/gozkd/proto"
)

// orderIDs sorts identities as ZooKeeper lists them, in whoAmI and where the scheme auth in an ACL
// becomes the client's identities: in the order of a Java hash set. ids are in the order in which
// they were added, which decides between equals.
func orderIDs(ids []proto.ID) {
	slots := uint32(16)
	for len(ids) >= int(slots/4*3) {
		slots *= 2
	}
	slices.SortStableFunc(ids, func(a, b proto.ID) int { return cmp.Compare(slotOf(a)&(slots-1), slotOf(b)&(slots-1)) })
}

// slotOf returns a number whose low bits are the place of an id in Java's ConcurrentHashMap.
func slotOf(id proto.ID) uint32 {
	h := (17*37+javaHash(id.Scheme))*37 + javaHash(id.ID)
	return h ^ h>>16
}

// javaHash returns the hash of Java's String.
func javaHash(s string) (h uint32) {
	for _, unit := range utf16.Encode([]rune(s)) {
		h = 31*h + uint32(unit)
	}
	return h
}
