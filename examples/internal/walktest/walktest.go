// Package walktest runs the walks of examples/ in tests, on virtual time.
package walktest

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozkd/gozkd/examples/internal/walk"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/zktest"
)

// Lines runs a walk against a server of its own, interrupts it after an hour, and returns the lines
// that it has printed. In the hour everything comes to its end that does not go on for ever.
func Lines(t *testing.T, run walk.Run) (lines []string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := zktest.Start(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		var out output
		err := run(ctx, func(ctx context.Context) (*recipes.Client, error) {
			return recipes.Connect(ctx, strings.Split(s.ConnectString(), ","), recipes.Dialer(s.Dialer()))
		}, &out)
		if err != nil && !errors.Is(err, ctx.Err()) {
			t.Errorf("%v, after\n%s", err, out.b.String())
		}
		if n := len(s.Sessions()); n > 0 {
			t.Errorf("%d sessions are left", n)
		}
		lines = strings.Split(strings.TrimSpace(out.b.String()), "\n")
	})
	return lines
}

// Expect compares lines with those that are wanted, in that order.
func Expect(t *testing.T, lines []string, want ...string) {
	t.Helper()
	if got, want := strings.Join(lines, "\n"), strings.Join(want, "\n"); got != want {
		t.Errorf("it printed\n%s\nwant\n%s", got, want)
	}
}

// Of returns those lines that begin with a prefix.
func Of(lines []string, prefix string) (some []string) {
	for _, line := range lines {
		if strings.HasPrefix(line, prefix) {
			some = append(some, line)
		}
	}
	return some
}

// output may be written by several at once.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}
