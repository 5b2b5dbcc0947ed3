package subtree

import (
	"fmt"
	"strconv"
	"strings"
)

// Kinds maps the paths of container and TTL znodes to the TTL in milliseconds, or 0 for a
// container. A Stat does not tell these znodes from persistent znodes. A nil Kinds means that the
// kinds are unknown.
type Kinds map[string]int64

// ParseKinds parses the answer to the word kind (docs/reference/monitoring.md) for a client with a
// chroot.
func ParseKinds(answer, chroot string) (Kinds, error) {
	kinds, lines, total := Kinds{}, 0, ""
	for line := range strings.Lines(answer) {
		if total != "" {
			return nil, fmt.Errorf("line %d follows the last line", lines+1)
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
				return nil, fmt.Errorf("line %d: invalid TTL %q", lines, number)
			}
		} else if kind != Container {
			return nil, fmt.Errorf("line %d: unknown kind %q", lines, kind)
		}
		if path, ok := strings.CutPrefix(path, chroot); ok && strings.HasPrefix(path, "/") {
			kinds[path] = ms
		}
	}
	if total != strconv.Itoa(lines) {
		return nil, fmt.Errorf("%d lines instead of the announced %q: the answer is truncated", lines, total)
	}
	return kinds, nil
}

// note sets the kind of a znode, if the kind is known.
func (k Kinds) note(n *Znode) {
	if ms, ok := k[n.Path]; ok {
		n.Container, n.TTLMs = ms == 0, ms
	}
}
