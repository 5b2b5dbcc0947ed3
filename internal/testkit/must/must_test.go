package must

import (
	"errors"
	"io"
	"strings"
	"testing"
)

func TestTry_ReturnsTheErrorThatEndedTheWork(t *testing.T) {
	passed := false
	err := Try(func() {
		Do(nil)
		Get(1, io.EOF)
		passed = true
	})
	if !errors.Is(err, io.EOF) || !strings.HasPrefix(err.Error(), "must_test.go:14: ") || passed {
		t.Fatalf("got %v, went on: %t", err, passed)
	}
	if err := Try(func() { _, _ = Get2(1, 2, nil) }); err != nil {
		t.Fatal(err)
	}
}

func TestFinally_JoinsBothErrors(t *testing.T) {
	err := Try(func() {
		defer Finally(func() error { return io.ErrClosedPipe })
		Failf("late: %w", io.EOF)
	})
	if !errors.Is(err, io.EOF) || !errors.Is(err, io.ErrClosedPipe) {
		t.Fatal(err)
	}
	if err := Try(func() { defer Finally(func() error { return io.EOF }) }); !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
}

func TestTry_LetsOtherPanicsPass(t *testing.T) {
	defer func() {
		if recover() != "other" {
			t.Error("the panic was swallowed")
		}
	}()
	_ = Try(func() {
		defer Finally(func() error { return nil })
		panic("other")
	})
}

func TestMain_ReturnsTheStatus(t *testing.T) {
	help := errors.New("help")
	for want, works := range [][]func(){
		{func() {}, func() { Parsed(nil) }, func() { Parsed(help) }},
		{func() { Failf("this is printed") }},
		{func() { Parsed(io.EOF) }},
	} {
		for _, work := range works {
			if got := Main("must_test", help, work); got != want {
				t.Errorf("status %d, want %d", got, want)
			}
		}
	}
}
