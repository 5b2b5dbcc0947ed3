package top

import (
	"fmt"
	"strings"
)

// upgrade returns the versions of the members while these differ, and the feature level while members
// are ready for a higher one.
func (e *ensemble) upgrade() (notes []string) {
	versions := groupBy(e, func(m *member) (string, bool) { return versionText(m), m.last.State.Gozkd() })
	if len(versions) > 1 {
		notes = append(notes, "versions: "+strings.Join(versions, ", "))
	}
	level := int64(0)
	ready := groupBy(e, func(m *member) (string, bool) {
		now, most, ok := m.levels()
		level = max(level, now)
		return fmt.Sprint(most), ok && most > now
	})
	if len(ready) > 0 {
		notes = append(notes, fmt.Sprintf("feature level %d, ready for %s", level, strings.Join(ready, ", ")))
	}
	return notes
}

// levels returns the active feature level and the highest level that the member agrees to activate.
func (m *member) levels() (active, ready int64, ok bool) {
	active, knows := m.last.Monitor.Int("gozkd_feature_level")
	ready, ok = m.last.Monitor.Int("gozkd_feature_level_max")
	return active, ready, ok && knows
}

// groupBy returns the values of the members that serve, each with the names of its members.
func groupBy(e *ensemble, of func(*member) (value string, ok bool)) []string {
	var values []string
	names := make(map[string][]string)
	for _, m := range e.members {
		if !m.up() {
			continue
		}
		value, ok := of(m)
		if !ok {
			continue
		}
		if names[value] == nil {
			values = append(values, value)
		}
		names[value] = append(names[value], m.name())
	}
	for i, v := range values {
		values[i] = fmt.Sprintf("%s on %s", v, strings.Join(names[v], " "))
	}
	return values
}
