package top

import (
	"fmt"
	"strings"
)

// info returns the versions of the members while these differ, the feature level while members are
// ready for a higher one, and the state of the archive unless it is a problem.
func (e *ensemble) info() (notes []string) {
	versions := e.onMembers(func(m *member) (string, bool) { return versionText(m), m.last.State.Gozkd() })
	if len(versions) > 1 {
		notes = append(notes, "versions: "+strings.Join(versions, ", "))
	}
	level := int64(0)
	ready := e.onMembers(func(m *member) (string, bool) {
		now, most, ok := m.levels()
		level = max(level, now)
		return fmt.Sprint(most), ok && most > now
	})
	if len(ready) > 0 {
		notes = append(notes, fmt.Sprintf("feature level %d, ready for %s", level, strings.Join(ready, ", ")))
	}
	if note, bad := e.archive(); note != "" && !bad {
		notes = append(notes, note)
	}
	return notes
}

// levels returns the active feature level and the highest level that the member agrees to activate.
func (m *member) levels() (active, ready int64, ok bool) {
	active, knows := m.last.Monitor.Int("gozkd_feature_level")
	ready, ok = m.last.Monitor.Int("gozkd_feature_level_max")
	return active, ready, ok && knows
}

// onMembers is groupBy with the names of the members in the text of each value.
func (e *ensemble) onMembers(of func(*member) (value string, ok bool)) []string {
	values, members := e.groupBy(of)
	for i, v := range values {
		values[i] = v + " on " + strings.Join(members[v], " ")
	}
	return values
}
