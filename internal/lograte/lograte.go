// Package lograte bounds how many log lines strangers can cause. Clients, peers and HTTP callers
// can repeat whatever makes a server write a line, thousands of times per second, until the disk is
// full or no other line can be found.
package lograte

import (
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/internal/fair"
)

const (
	// Burst is how many lines of a kind are written at once.
	Burst = 20
	// Interval is the time between two lines of a kind afterwards.
	Interval = time.Second
	// maxKinds bounds the memory. Messages are constants of the program; if a library makes one of
	// a stranger's text, all kinds above this number share one limit.
	maxKinds = 256
)

// logger writes to an hclog.Logger. Lines with the same message are of one kind, whatever their
// arguments, and whichever logger derived from this one writes them.
type logger struct {
	hclog.Logger
	kinds *fair.Rate
}

// New returns a logger that writes at most Burst lines of a kind at once, and one line per Interval
// afterwards. The first line of a kind that is written after others were left out has an argument
// "suppressed" with their number. Lines of the levels debug and trace are not limited, because
// those who turn these levels on want all lines.
func New(l hclog.Logger) hclog.Logger {
	return &logger{l, fair.NewSharedRate(Interval, Burst, maxKinds)}
}

func (l *logger) Log(level hclog.Level, msg string, args ...any) {
	switch {
	case level < hclog.Info:
	case level < l.GetLevel():
		return // a line that would not be written does not count
	default:
		wait, suppressed := l.kinds.Take(msg, time.Now())
		if wait > 0 {
			return
		}
		if suppressed > 0 {
			args = append(args[:len(args):len(args)], "suppressed", suppressed)
		}
	}
	l.Logger.Log(level, msg, args...)
}

func (l *logger) Info(msg string, args ...any)  { l.Log(hclog.Info, msg, args...) }
func (l *logger) Warn(msg string, args ...any)  { l.Log(hclog.Warn, msg, args...) }
func (l *logger) Error(msg string, args ...any) { l.Log(hclog.Error, msg, args...) }

func (l *logger) With(args ...any) hclog.Logger { return &logger{l.Logger.With(args...), l.kinds} }
func (l *logger) Named(name string) hclog.Logger {
	return &logger{l.Logger.Named(name), l.kinds}
}
func (l *logger) ResetNamed(name string) hclog.Logger {
	return &logger{l.Logger.ResetNamed(name), l.kinds}
}
