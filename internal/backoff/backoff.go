// Package backoff pauses between attempts that failed.
package backoff

import (
	"context"
	"time"
)

// The pauses of Retry.
const (
	First   = 100 * time.Millisecond
	Longest = 5 * time.Second
)

// Retry calls try until try reports done or ctx ends. The pause after a failed attempt doubles from
// First to Longest. Retry reports whether try was done.
func Retry(ctx context.Context, try func() (done bool)) bool {
	for pause := First; !try(); pause = min(2*pause, Longest) {
		if !Sleep(ctx, pause) {
			return false
		}
	}
	return true
}

// Sleep waits for d and returns true, or returns false when ctx ends first.
func Sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}
