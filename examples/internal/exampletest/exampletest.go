// Package exampletest runs the programs of examples/ in tests, on virtual time.
package exampletest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozkd/gozkd/examples/internal/example"
	"github.com/gozkd/gozkd/internal/testkit/logbuf"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/zktest"
)

// Lines runs a program with its own server and returns the lines that the program has printed. A
// program that does not end is interrupted after an hour of virtual time.
func Lines(t *testing.T, run example.Run) (lines []string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := zktest.Start(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		var out logbuf.Buffer
		err := run(ctx, func(ctx context.Context) (*recipes.Client, error) {
			return recipes.Connect(ctx, strings.Split(s.ConnectString(), ","), recipes.Dialer(s.Dialer()))
		}, &out)
		if err != nil && !errors.Is(err, ctx.Err()) {
			t.Errorf("%v, after\n%s", err, out.String())
		}
		if n := len(s.Sessions()); n > 0 {
			t.Errorf("%d sessions remain", n)
		}
		lines = strings.Split(strings.TrimSpace(out.String()), "\n")
	})
	return lines
}

// Expect compares lines with want.
func Expect(t *testing.T, lines []string, want ...string) {
	t.Helper()
	if got, want := strings.Join(lines, "\n"), strings.Join(want, "\n"); got != want {
		t.Errorf("it printed\n%s\nwant\n%s", got, want)
	}
}

// WithPrefix returns the lines that begin with prefix.
func WithPrefix(lines []string, prefix string) (some []string) {
	for _, line := range lines {
		if strings.HasPrefix(line, prefix) {
			some = append(some, line)
		}
	}
	return some
}
