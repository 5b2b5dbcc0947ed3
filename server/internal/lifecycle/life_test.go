package lifecycle

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

func newLife() *Life {
	l := new(Life)
	l.Init()
	return l
}

// A server starts once, and not after its end.
func TestLife_StartsOnce(t *testing.T) {
	l := newLife()
	if _, finished, err := l.Begin(t.Context()); err != nil {
		t.Fatal(err)
	} else {
		finished()
	}
	if _, _, err := l.Begin(t.Context()); !errors.Is(err, ErrStarted) {
		t.Errorf("a second start: %v", err)
	}
	if err := l.End(func(bool) error { return nil }); err != nil {
		t.Error(err)
	}
	if _, _, err := l.Begin(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("a start after the end: %v", err)
	}
}

// The end aborts a start that is under way and waits for it, shuts down once, and every caller
// returns only then.
func TestLife_EndDuringStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLife()
		ctx, finished, err := l.Begin(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		release, shutdowns, ended := make(chan struct{}), 0, 0
		failure := errors.New("the disk is full")
		results := make(chan error, 2)
		for range 2 {
			go func() { // ends when release is closed
				results <- l.End(func(bool) error { shutdowns++; <-release; return failure })
			}()
		}
		synctest.Wait()
		if ctx.Err() == nil || shutdowns > 0 {
			t.Fatalf("while the start runs: %v, %d shutdowns", ctx.Err(), shutdowns)
		}
		finished()
		synctest.Wait()
		if shutdowns != 1 || len(results) > 0 {
			t.Fatalf("%d shutdowns, %d callers returned before the end", shutdowns, len(results))
		}
		close(release)
		for range 2 {
			if err := <-results; errors.Is(err, failure) {
				ended++
			}
		}
		if ended != 1 {
			t.Errorf("%d callers got the error of the shutdown", ended)
		}
	})
}

// The cause for which a server stopped by itself is the first, delivered once, and the reason for
// not accepting connections.
func TestLife_Fails(t *testing.T) {
	l := newLife()
	if err := l.WhyNot(); !errors.Is(err, ErrNotStarted) || l.Failed() != nil {
		t.Errorf("before the start: %v, %v", err, l.Failed())
	}
	l.Accepting.Store(true)
	l.Serving.Store(true)
	first, second := errors.New("first"), errors.New("second")
	l.Fail(first, func() {
		if l.Serving.Load() || l.Accepting.Load() || len(l.Err()) > 0 {
			t.Error("it still serves, or says that it stopped")
		}
		<-l.Stopping()
	})
	l.Fail(second, func() {})
	if err := l.WhyNot(); !errors.Is(err, ErrClosed) || !errors.Is(err, first) || errors.Is(err, second) {
		t.Errorf("the reason is %v", err)
	}
	if err := <-l.Err(); !errors.Is(err, first) || len(l.Err()) > 0 {
		t.Errorf("delivered: %v, and %d more", err, len(l.Err()))
	}
}
