package capacity

import (
	"cmp"
	"maps"
	"slices"
)

// Board holds the abilities of the members of an ensemble, for the leader. A silent member keeps
// the ability that it reported last. The zero value is ready to use. The caller serializes calls.
type Board struct {
	reports map[uint64]Report
}

// Report is what a member can hold. Its Disk decides only with the disks of other voters: if one is
// full its member stops, and the others go on.
type Report struct {
	Ability
	Disk Ability
}

// Note notes the report of a member.
func (b *Board) Note(member uint64, r Report) {
	if b.reports == nil {
		b.reports = make(map[uint64]Report)
	}
	r.Ability.Member, r.Disk.Member = uint8(member), uint8(member)
	b.reports[member] = r
}

// Propose returns the limit that a state of that weight should have instead of now's, and whether
// the leader should propose it: a change by less than a hundredth is not worth a request, nor is a
// limit that is far away; see Counts. A limit rises only if its member has said so to this leader,
// or is no member any more. Members that are no members any more are forgotten. The leader is not
// connected with the voters that are away.
func (b *Board) Propose(now Ability, weight int64, voters, away []uint64, isMember func(uint64) bool) (Ability, bool) {
	maps.DeleteFunc(b.reports, func(id uint64, _ Report) bool { return !isMember(id) })
	if len(away) > (len(voters)-1)/2 {
		return now, false // nothing would be committed
	}
	l := b.majority(now, voters, away)
	for _, id := range slices.Sorted(maps.Keys(b.reports)) {
		l = l.Least(b.reports[id].Ability)
	}
	if now.Weight == 0 && !l.Counts(weight) || !l.Counts(2*weight) {
		l = Ability{} // it goes later than it comes
	}
	its := uint64(now.Member)
	_, known := b.reports[its]
	if rises := l.Weight == 0 || l.Weight > now.Weight; rises && now.Weight != 0 && !known && isMember(its) {
		return now, false
	}
	changed := max(l.Weight-now.Weight, now.Weight-l.Weight)
	if l.Cause != now.Cause || (l.Member == 0) != (now.Member == 0) || changed > now.Weight/100 {
		return l, true
	}
	return now, false
}

// majority returns what the disks of a majority can hold. Voters that are away hold nothing: if the
// disk of another one were full, too few would be left. A voter that has not reported to this
// leader can hold no more than now, if now is of disks. Of several voters none decides alone.
func (b *Board) majority(now Ability, voters, away []uint64) Ability {
	var disks []Ability
	for _, id := range voters {
		r, known := b.reports[id]
		if !known && now.Cause == Disk {
			r.Disk = now
		}
		if len(voters) > 1 {
			r.Disk.Member = 0
		}
		if !slices.Contains(away, id) {
			disks = append(disks, r.Disk)
		}
	}
	slices.SortFunc(disks, func(x, y Ability) int { return cmp.Compare(x.most(), y.most()) })
	return disks[(len(voters)-1)/2-len(away)] // so many members may be missing, besides those that are away
}
