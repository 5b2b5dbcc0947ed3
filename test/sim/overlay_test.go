package sim

import (
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// Which of two timers in a select fires first, and when a stopped timer leaves the heap of timers,
// does not depend on where their channels are in memory. A select locks the channels in the order
// of their addresses.
func TestOverlay_TimersOfAnyAddress(t *testing.T) {
	if *overlay == "" {
		t.Skip("only the overlay promises that")
	}
	var outcomes [2][]bool
	for i, ascending := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			for range 20 {
				outcomes[i] = append(outcomes[i], twoTimers(ascending)...)
			}
		})
	}
	if !slices.Equal(outcomes[0], outcomes[1]) {
		t.Errorf("with ascending addresses %v\nwith descending ones %v", outcomes[0], outcomes[1])
	}
}

// twoTimers reports which of two timers of one moment fires first, and whether the runtime sends at
// once when a stopped timer is set to the present.
func twoTimers(ascending bool) []bool {
	a, b := time.NewTimer(time.Hour), time.NewTimer(time.Hour)
	if address := func(t *time.Timer) uintptr { return reflect.ValueOf(t.C).Pointer() }; address(a) < address(b) != ascending {
		a, b = b, a
	}
	both := func() { a.Reset(time.Hour); b.Reset(time.Hour) }
	both()
	first := false
	select {
	case <-a.C:
		first = true
	case <-b.C:
	}
	both()
	defer time.AfterFunc(time.Minute, func() {}).Stop() // the head of the heap
	left, done := make(chan struct{}), make(chan struct{})
	go func() { // ends with done
		select {
		case <-a.C:
		case <-b.C:
		case <-left:
		}
		select {
		case <-a.C: // in the heap again, where b still is
		case <-done:
		}
	}()
	synctest.Wait()
	close(left)
	synctest.Wait()
	defer time.AfterFunc(time.Hour, func() {}).Stop() // joins the heap, which forgets stopped timers at its end
	b.Reset(0)
	sent := false
	select {
	case <-b.C:
		sent = true
	default:
	}
	close(done)
	return []bool{first, sent}
}
