package meter

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/gozkd/gozkd/internal/histogram"
)

// The number of namespaces is bounded; all others share one.
func TestNamespaces_Bound(t *testing.T) {
	var m Meter
	b := NewBatchStats(&m)
	for i := range 300 {
		path := "/n" + string(rune('0'+i/100)) + string(rune('0'+i/10%10)) + string(rune('0'+i%10)) + "/x"
		b.Read(path, 94)
	}
	b.Settle(time.Time{})
	all := m.spaces.all()
	if len(all) != maxNamespaces+1 || all[0].name != otherNamespaces {
		t.Fatalf("%d namespaces, the first is %q", len(all), all[0].name)
	}
	if d := histogram.Snapshot(&all[0].reads); d.Count != 200 || d.Sum != 200*101 {
		t.Errorf("the others: %d reads, %v bytes", d.Count, d.Sum)
	}
	for _, c := range [][2]string{{"/", ""}, {"", ""}, {"/a", "a"}, {"/a/b", "a"}, {"a/b", ""}} {
		if got := namespaceOf(c[0]); got != c[1] {
			t.Errorf("the namespace of %q is %q", c[0], got)
		}
	}
}

// Long names count as others.
func TestNamespaces_LongName(t *testing.T) {
	var m Meter
	b := NewBatchStats(&m)
	longest := strings.Repeat("x", MaxNamespaceBytes)
	b.Read("/"+longest, 1)
	for i := range 3 {
		b.Read("/"+longest+string(rune('a'+i)), 1)
	}
	b.Settle(time.Time{})
	all := m.spaces.all()
	if len(all) != 2 || all[0].name != otherNamespaces || all[1].name != longest {
		t.Fatalf("%d namespaces, the first is %.300q", len(all), all[0].name)
	}
	if d := histogram.Snapshot(&all[0].reads); d.Count != 3 {
		t.Errorf("the others: %d reads", d.Count)
	}
}

// A clock that is off by hours, for millions of requests, must not make values negative.
func TestSummary_Large(t *testing.T) {
	var h histogram.Histogram
	for range 1000 {
		h.Record(int64(10*time.Hour), 10_000)
	}
	h.Record(math.MaxInt64, 1000)
	h.Record(-int64(10*time.Hour), 7)
	if s := summary(true, perMs, &h); s.Sum <= 0 || s.Avg <= 0 || s.Min != 0 || s.Max <= 0 {
		t.Errorf("%+v", s)
	}
}
