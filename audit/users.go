package audit

import (
	"slices"
	"strings"
	"unicode/utf16"

	"github.com/gozkd/gozkd/proto"
)

// users joins the names of identities as ZooKeeper does: in the order of Java's ConcurrentHashMap,
// without the empty ones and the superuser's second identity.
func users(ids []proto.ID) string {
	size := 16
	for len(ids) >= size*3/4 {
		size *= 2
	}
	bucket := func(id proto.ID) int {
		h := uint32(37*(37*17+javaHash(id.Scheme)) + javaHash(id.ID))
		return int(h^h>>16) & (size - 1)
	}
	ids = slices.Clone(ids)
	slices.SortStableFunc(ids, func(a, b proto.ID) int { return bucket(a) - bucket(b) })
	var names []string
	for _, id := range ids {
		if n := name(id); strings.TrimSpace(n) != "" && id.Scheme != "super" {
			names = append(names, n)
		}
	}
	return strings.Join(names, ",")
}

// javaHash is String.hashCode.
func javaHash(s string) (h int32) {
	for _, unit := range utf16.Encode([]rune(s)) {
		h = 31*h + int32(unit)
	}
	return h
}
