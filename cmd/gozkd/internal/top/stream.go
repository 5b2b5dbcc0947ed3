package top

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// stream writes the output without a screen: once, or for each round until ctx ends. A round is
// over when each member has been asked once more.
func stream(ctx context.Context, w *watcher, o options, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var e ensemble
	var err error
	rounds := make(map[string]int)
	round, up := 2, 0 // the first round has no rates
	w.run(ctx, func(r Report) {
		if ctx.Err() != nil {
			return
		}
		e.observe(r)
		rounds[r.Sample.Address]++
		for _, m := range e.members {
			if rounds[m.Address] < round {
				return
			}
		}
		round, up = round+1, e.totals().up
		if o.json {
			err = json.NewEncoder(out).Encode(e.json())
		} else {
			_, err = io.WriteString(out, e.text())
		}
		if o.once || err != nil {
			cancel()
		}
	})
	switch {
	case err != nil:
		return fmt.Errorf("writing: %w", err)
	case o.once && round == 2:
		return context.Cause(ctx)
	case o.once && up == 0:
		return errors.New("no member serves")
	}
	return nil
}

// text returns everything that is known as plain text of any length.
func (e *ensemble) text() string {
	const wide = 200
	m := newModel(theme{}, 0, nil)
	m.ensemble, m.width = *e, wide
	lines := []string{m.titleLine(), m.totalsLine()}
	for _, p := range e.problems() {
		lines = append(lines, "! "+clean(p))
	}
	lines = append(lines, m.notes(e.upgrade())...)
	lines = append(lines, memberLines(e, m.theme, wide, len(e.members)+1)...)
	lines = append(lines, m.notes(e.missing(func(s *Sample) error { return s.MonitorErr }))...)
	lines = append(lines, "")
	fixed, rows := m.clientLines()
	lines = append(append(lines, fixed...), rows...)
	lines = append(lines, "")
	lines = append(lines, m.hotLines()...)
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n") + "\n"
}
