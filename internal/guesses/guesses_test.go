package guesses

import (
	"fmt"
	"testing"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/watchdog"
)

func TestMain(m *testing.M) { watchdog.Watch(m).Run() }

// Made-up names must not make the server forget how often a password was guessed.
func TestBounds_MadeUpNames(t *testing.T) {
	now := time.Now()
	g := New(func() time.Time { return now })
	try := func(user, password string) (compared bool) {
		end, _, compared := g.Begin("192.0.2.1", user, password)
		if compared {
			end(password == "right")
		}
		return compared
	}
	try("ann", "right")
	for try("eve", "wrong") { // until nothing is left for the network
	}
	for range 50 {
		try("ann", "wrong")
	}
	for i := range 2 * maxGuessers {
		try(fmt.Sprint(i), "wrong")
	}
	if try("ann", "right") {
		t.Error("the right password is told apart after 50 wrong ones")
	}
}

// The refusals of a network and of all networks are recorded as often as guesses are compared. The
// next record counts the others.
func TestBounds_Record(t *testing.T) {
	now := time.Now()
	g := New(func() time.Time { return now })
	recorded := func(host string, times int) (n int) {
		for range times {
			if _, ok := g.Record(host); ok {
				n++
			}
		}
		return n
	}
	if n := recorded("192.0.2.1", 1000); n != 10 {
		t.Errorf("%d refusals of a network are recorded", n)
	}
	if unrecorded, ok := g.Record("192.0.2.2"); !ok || unrecorded != 990 {
		t.Errorf("recorded: %t, %d were not", ok, unrecorded)
	}
	n := 0
	for i := range 1000 {
		n += recorded(fmt.Sprintf("2001:db8:0:%x::1", i), 1)
	}
	if n != 189 {
		t.Errorf("%d refusals of 1000 networks are recorded", n)
	}
	now = now.Add(11 * time.Second)
	if unrecorded, ok := g.Record("192.0.2.1"); !ok || unrecorded != 811 {
		t.Errorf("later recorded: %t, %d were not", ok, unrecorded)
	}
}
