package capacity

import (
	"maps"
	"slices"
)

// Board holds the abilities of the members of an ensemble, for the leader. A silent member keeps
// the ability that it reported last. The zero value is ready to use. The caller serializes calls.
type Board struct {
	reports map[uint64]Ability
}

// Report notes the ability of a member.
func (b *Board) Report(member uint64, a Ability) {
	if b.reports == nil {
		b.reports = make(map[uint64]Ability)
	}
	a.Member = uint8(member)
	b.reports[member] = a
}

// Propose returns the limit that a state of that weight should have instead of now's, and whether
// the leader should propose it: a change by less than a hundredth is not worth a request, nor is a
// limit that is far away; see Counts. A limit rises only if its member has said so to this leader,
// or is no member any more. Members that are no members any more are forgotten.
func (b *Board) Propose(now Ability, weight int64, isMember func(id uint64) bool) (Ability, bool) {
	maps.DeleteFunc(b.reports, func(id uint64, _ Ability) bool { return !isMember(id) })
	var l Ability
	for _, id := range slices.Sorted(maps.Keys(b.reports)) {
		l = l.Least(b.reports[id])
	}
	if now.Weight == 0 && !l.Counts(weight) || !l.Counts(2*weight) {
		l = Ability{} // it goes later than it comes
	}
	its := uint64(now.Member)
	_, known := b.reports[its]
	if rises := l.Weight == 0 || l.Weight > now.Weight; rises && now.Weight != 0 && !known && isMember(its) {
		return now, false
	}
	if changed := max(l.Weight-now.Weight, now.Weight-l.Weight); l.Cause != now.Cause || changed > now.Weight/100 {
		return l, true
	}
	return now, false
}
