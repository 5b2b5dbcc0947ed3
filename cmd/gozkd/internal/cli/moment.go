package cli

import (
	"fmt"
	"time"

	"github.com/gozkd/gozkd/internal/history"
)

// Moment is the value of --at, --since and --until: a zxid or a time. The zero value is none.
type Moment struct{ history.Moment }

// layouts are the forms of a time, in UTC unless they say otherwise.
var layouts = []string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02 15:04", time.DateOnly}

// Set implements flag.Value.
func (m *Moment) Set(text string) error {
	at, ok := history.ParseMoment(text, layouts...)
	if ok {
		m.Moment = at
		return nil
	}
	return fmt.Errorf("%q is no moment: name a zxid (0x100000002) or a time (2026-11-23T08:00:00Z, 2026-11-23 08:00 in UTC, 2026-11-23)", text)
}

// ParseTime reads a time in the forms of a Moment.
func ParseTime(text string) (time.Time, error) {
	at, ok := history.ParseMoment(text, layouts...)
	if !ok || at.Zxid != 0 {
		return time.Time{}, fmt.Errorf("%q is no time: name one such as "+
			"2026-11-23T08:00:00Z, 2026-11-23 08:00 in UTC, 2026-11-23", text)
	}
	return at.Time, nil
}

// String implements flag.Value.
func (m *Moment) String() string { return "" }
