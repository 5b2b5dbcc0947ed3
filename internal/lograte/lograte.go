// Package lograte bounds how many log lines strangers can cause. Clients, peers and HTTP callers
// can repeat whatever makes a server write a line, thousands of times per second, until the disk is
// full or no other line can be found.
package lograte

import (
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
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
	*kinds
}

// kinds holds the limits of all kinds of lines.
type kinds struct {
	mu   sync.Mutex // guards all
	kind map[string]*kind
}

type kind struct {
	next       time.Time // when the next line would be due at one line per Interval
	suppressed int       // since the last line
}

// New returns a logger that writes at most Burst lines of a kind at once, and one line per Interval
// afterwards. The first line of a kind that is written after others were left out has an argument
// "suppressed" with their number. Lines of the levels debug and trace are not limited, because
// those who turn these levels on want all lines.
func New(l hclog.Logger) hclog.Logger {
	return &logger{l, &kinds{kind: make(map[string]*kind)}}
}

// allow reports whether a line may be written now, and how many lines of its kind were left out
// since the last line.
func (k *kinds) allow(msg string) (suppressed int, ok bool) {
	now := time.Now()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.kind[msg] == nil {
		if len(k.kind) >= maxKinds {
			msg = ""
		}
		if k.kind[msg] == nil {
			k.kind[msg] = new(kind)
		}
	}
	of := k.kind[msg]
	if of.next.Before(now) {
		of.next = now
	}
	if of.next.Sub(now) > (Burst-1)*Interval {
		of.suppressed++
		return 0, false
	}
	of.next = of.next.Add(Interval)
	suppressed, of.suppressed = of.suppressed, 0
	return suppressed, true
}

// Log writes a line of that level.
func (l *logger) Log(level hclog.Level, msg string, args ...any) {
	switch {
	case level < hclog.Info:
	case level < l.GetLevel():
		return // a line that would not be written does not count
	default:
		suppressed, ok := l.allow(msg)
		if !ok {
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
