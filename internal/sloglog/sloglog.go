// Package sloglog lets packages that write to an hclog.Logger write to a slog.Logger.
package sloglog

import (
	"context"
	"io"
	"log/slog"
	"time"

	"github.com/hashicorp/go-hclog"
)

// Choose returns a logger that writes to s if s is not nil, and otherwise l or, if l is nil, a
// logger that writes nothing.
func Choose(s *slog.Logger, l hclog.Logger) hclog.Logger {
	if s == nil && l == nil {
		return hclog.NewNullLogger()
	} else if s == nil {
		return l
	}
	least := hclog.Trace
	for least < hclog.Off && !s.Enabled(context.Background(), level(least)) {
		least++
	}
	out := hclog.NewInterceptLogger(&hclog.LoggerOptions{Output: io.Discard, Level: least})
	out.RegisterSink(sink{s.Handler()})
	return out
}

// level converts a level. Trace is as far below slog's Debug as Debug is below Info.
func level(l hclog.Level) slog.Level { return slog.Level(4 * (l - hclog.Info)) }

// sink passes lines of an hclog.InterceptLogger to a handler.
type sink struct{ slog.Handler }

func (s sink) Accept(name string, l hclog.Level, msg string, args ...any) {
	if ctx := context.Background(); s.Enabled(ctx, level(l)) {
		r := slog.NewRecord(time.Now(), level(l), msg, 0)
		if name != "" {
			r.Add("logger", name)
		}
		r.Add(args...)
		_ = s.Handle(ctx, r) // like slog.Logger, which has nobody to tell either
	}
}
