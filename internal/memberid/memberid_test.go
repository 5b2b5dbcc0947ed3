package memberid

import (
	"flag"
	"slices"
	"strconv"
	"testing"

	"github.com/gozkd/gozkd/internal/testkit/watchdog"
)

func TestMain(m *testing.M) { watchdog.Watch(m).Run() }

// Each number has an id of its own, which is not 0, and fits into a byte.
func TestOf(t *testing.T) {
	numbers := make(map[uint64]int)
	for number := range MaxNumber + 1 {
		id := Of(number)
		if other, twice := numbers[id]; twice || id == 0 || id > 255 || Number(id) != uint64(number) || NumberOrNone(id) != number {
			t.Errorf("server %d has the id %d, as has server %d", number, id, other)
		}
		numbers[id] = number
	}
	for _, number := range []int64{-1, -255, MaxNumber + 1, 256, 1 << 40} {
		if id := Of(number); id != 0 {
			t.Errorf("%d is the number of the id %d", number, id)
		}
	}
	if NumberOrNone(0) != -1 || !slices.Equal(Numbers([]uint64{1, Zero, 254}), []uint64{1, 0, 254}) {
		t.Error(NumberOrNone(0), Numbers([]uint64{1, Zero, 254}))
	}
}

func TestFlag(t *testing.T) {
	for text, want := range map[string]uint64{"0": Zero, "1": 1, "254": 254, "255": 0, "-1": 0, "x": 0, "": 0} {
		var id uint64
		f := Flag{&id}
		var _ flag.Value = f
		err := f.Set(text)
		if id != want || (err == nil) != (want != 0) {
			t.Errorf("%q: %d, %v, want %d", text, id, err, want)
		}
		if want != 0 && f.String() != strconv.FormatUint(Number(want), 10) {
			t.Errorf("%q is printed as %q", text, f)
		}
	}
	if got := (Flag{new(uint64)}).String() + (Flag{}).String(); got != "" {
		t.Errorf("a flag that is not set is printed as %q", got)
	}
}
