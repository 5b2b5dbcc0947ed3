package sloglog

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/internal/testkit/watchdog"
)

func TestMain(m *testing.M) { watchdog.Watch(m).Run() }

// TestChoose: lines arrive at their level, with name and arguments, and none below the handler's
// level, which may change.
func TestChoose(t *testing.T) {
	var out strings.Builder
	least := new(slog.LevelVar)
	l := Choose(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: least, AddSource: true, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}})), hclog.NewNullLogger())
	if l.IsDebug() || !l.IsInfo() {
		t.Errorf("debug %t, info %t, want only info", l.IsDebug(), l.IsInfo())
	}
	l.Debug("left out")
	l.Named("consensus").Named("wal").With("member", 1).Warn("slow", "took_ms", 7)
	l.Error("bad")
	least.Set(slog.LevelDebug - 4)
	l.Trace("all")
	want := `level=WARN msg=slow logger=consensus.wal member=1 took_ms=7
level=ERROR msg=bad
level=DEBUG-4 msg=all
`
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}

// TestChoose_WithoutSlog: without a slog.Logger the hclog.Logger is used, or none.
func TestChoose_WithoutSlog(t *testing.T) {
	l := hclog.Default()
	if Choose(nil, l) != l || Choose(nil, nil) == nil {
		t.Error("another logger than the one given, or nil without one")
	}
}
