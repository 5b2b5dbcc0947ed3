package subtree

import (
	"fmt"
	"strconv"
	"strings"
)

// Kinds are the znodes of a client that go away by themselves when they have no children, by path: the time to live in
// milliseconds, or 0 of a container. No Stat tells them from persistent ones. nil: it is not known which there are.
type Kinds map[string]int64

// ParseKinds reads what the word kind answers (docs/reference/monitoring.md), for a client with that chroot.
func ParseKinds(answer, chroot string) (Kinds, error) {
	kinds, lines, total := Kinds{}, 0, ""
	for line := range strings.Lines(answer) {
		if total != "" {
			return nil, fmt.Errorf("line %d is behind the last one", lines+1)
		}
		kind, rest, more := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if !more {
			total = kind
			continue
		}
		lines++
		var ms int64
		path := rest
		if kind == TTL {
			var number string
			number, path, _ = strings.Cut(rest, "\t")
			var err error
			if ms, err = strconv.ParseInt(number, 10, 64); err != nil || ms <= 0 {
				return nil, fmt.Errorf("line %d: a time to live of %q", lines, number)
			}
		} else if kind != Container {
			return nil, fmt.Errorf("line %d: unknown kind %q", lines, kind)
		}
		if path, ok := strings.CutPrefix(path, chroot); ok && strings.HasPrefix(path, "/") {
			kinds[path] = ms
		}
	}
	if total != strconv.Itoa(lines) {
		return nil, fmt.Errorf("%d lines, and not %q as it says: it was cut off", lines, total)
	}
	return kinds, nil
}

// note completes a znode as far as is known.
func (k Kinds) note(n *Znode) {
	if ms, ok := k[n.Path]; ok {
		n.Container, n.TTLMs = ms == 0, ms
	}
}
