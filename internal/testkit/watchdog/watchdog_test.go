package watchdog

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// lookUntilHang charges interval after interval with the same stacks and returns how long it took
// until the step was said to hang, and the text.
func lookUntilHang(t *testing.T, d *dog, dump []byte) (time.Duration, string) {
	t.Helper()
	for n := range time.Duration(100_000) {
		if hangs := d.charge(dump); hangs != "" {
			return n * interval, hangs
		}
	}
	t.Fatal("no hang was reported")
	return 0, ""
}

func TestCharge_NamesTheTest(t *testing.T) {
	d := &dog{load: func() float64 { return 0.5 }}
	took, hangs := lookUntilHang(t, d, d.stacks())
	if took != limit {
		t.Errorf("reported after %v, want %v", took, limit)
	}
	for _, want := range []string{"TestCharge_NamesTheTest hangs", "watchdog_test.go:", "goroutine "} {
		if !strings.Contains(hangs, want) {
			t.Errorf("no %q in\n%s", want, hangs)
		}
	}
}

func TestCharge_LimitGrowsWithLoad(t *testing.T) {
	d := &dog{load: func() float64 { return 10 }}
	if took, _ := lookUntilHang(t, d, d.stacks()); took != 10*limit {
		t.Errorf("reported after %v, want %v", took, 10*limit)
	}
}

// A subtest and a bubble are steps of their own: each begins the count again, and so does its end.
func TestCharge_StepsBeginAgain(t *testing.T) {
	d := &dog{load: func() float64 { return 1 }}
	almost := func(where string) {
		for range limit / interval {
			if hangs := d.charge(d.stacks()); hangs != "" {
				t.Fatalf("%s: %s", where, hangs)
			}
		}
	}
	almost("in the test")
	t.Run("subtest", func(*testing.T) { almost("in a subtest") })
	for range 2 {
		synctest.Test(t, func(*testing.T) { almost("in a bubble") })
	}
	almost("in the test, at its end")
	if d.charge(d.stacks()) == "" {
		t.Error("the last step reached the limit and was not reported")
	}
}

func TestTestNames_OutsideOfTests(t *testing.T) {
	if got := testNames([]byte("goroutine 1 [running]:\nmain.main()")); len(got) != 1 || got[0] != "TestMain" {
		t.Errorf("%q", got)
	}
}

// The bubble's clock stands in for the real one.
func TestTimer_LimitGrowsWithLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		p := &timer{left: 10 * time.Second, enough: time.Second / 2, cancel: cancel, load: func() float64 { return 4 }}
		begun := time.Now()
		p.start()
		<-ctx.Done()
		if took := time.Since(begun); took < 35*time.Second || took > 43*time.Second {
			t.Errorf("10 s at a load of 4 took %v", took)
		}
		p.stop()
	})
}

func TestContext_EndsWithTheTest(t *testing.T) {
	var ctx context.Context
	t.Run("subtest", func(t *testing.T) {
		if ctx = Context(t, time.Hour); ctx.Err() != nil {
			t.Error(ctx.Err())
		}
	})
	if ctx.Err() == nil {
		t.Error("the context outlives the test")
	}
}
