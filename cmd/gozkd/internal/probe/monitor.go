package probe

import "strings"

// Monitor is what mntr says: each key without the zk_ in front, and its value as it stands there.
type Monitor map[string]string

// ParseMonitor reads an answer to mntr.
func ParseMonitor(mntr string) Monitor {
	m := make(Monitor)
	for line := range strings.Lines(mntr) {
		key, value, ok := strings.Cut(strings.TrimRight(line, "\r\n"), "\t")
		if key, ours := strings.CutPrefix(key, "zk_"); ok && ours {
			m[key] = value
		}
	}
	return m
}

// Int returns a value that is a whole number. ZooKeeper prints some of them as 12.0.
func (m Monitor) Int(key string) (int64, bool) {
	v, ok := m.Float(key)
	return int64(v), ok
}

// Float returns a value that is a finite number.
func (m Monitor) Float(key string) (float64, bool) { return float(m[key]) }
