package probe

import "strings"

// Monitor is the answer to mntr: values by key, without the prefix zk_.
type Monitor map[string]string

// ParseMonitor parses the answer to mntr.
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

// Int returns an integer value. ZooKeeper prints some of them as 12.0.
func (m Monitor) Int(key string) (int64, bool) {
	v, ok := m.Float(key)
	return int64(v), ok
}

// Float returns a finite value.
func (m Monitor) Float(key string) (float64, bool) { return float(m[key]) }
