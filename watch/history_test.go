package watch

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/gozkd/gozkd/proto"
	"pgregory.net/rapid"
)

func (h *History) after(zxid proto.Zxid) (all []string) {
	h.After(zxid, func(c Change) bool {
		all = append(all, fmt.Sprintf("%d %d %s %s", c.Zxid, c.Type, c.Path, c.ACL))
		return true
	})
	return all
}

// TestHistory_AgreesWithModel: what a history covers is all that was added (H1), within its bytes
// (H2), and it reaches back as far as the bytes allow.
func TestHistory_AgreesWithModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := History{Limit: rapid.SampledFrom([]int{-1, 0, 100, 1000, 20_000, 300_000}).Draw(t, "limit")}
		var zxid, reset proto.Zxid
		type change struct {
			zxid proto.Zxid
			text string
			size int
		}
		var all []change
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				for range rapid.IntRange(1, 50).Draw(t, "n") {
					zxid += proto.Zxid(rapid.SampledFrom([]int64{0, 0, 1, 1, 1, 2, 1 << 32}).Draw(t, "by"))
					typ, acl := proto.EventType(rapid.Int32Range(1, 3).Draw(t, "type")), ""
					path := rapid.SampledFrom([]string{"", "/a", "/ab", "/b"}).Draw(t, "parent") +
						"/" + strings.Repeat("x", rapid.SampledFrom([]int{0, 1, 7, 200, 1000}).Draw(t, "name")) + rapid.SampledFrom([]string{"", "y", "z"}).Draw(t, "end")
					if typ == proto.EventDeleted {
						acl = strings.Repeat("a", rapid.SampledFrom([]int{0, 1, 70}).Draw(t, "acl"))
					}
					h.Add(zxid, typ, path, acl)
					all = append(all, change{zxid, fmt.Sprintf("%d %d %s %s", zxid, typ, path, acl), len(path) + len(acl) + maxChangeHeader})
				}
			},
			"reset": func(t *rapid.T) {
				zxid += proto.Zxid(rapid.IntRange(0, 3).Draw(t, "by"))
				reset, all = zxid, nil
				h.Reset(zxid)
			},
			"": func(t *rapid.T) {
				bytes := 0
				for _, k := range h.chunks {
					bytes += cap(k.buf)
				}
				if bytes > max(h.Limit, 0) {
					t.Fatalf("%d bytes, the limit is %d", bytes, h.Limit)
				}
				since := zxid - proto.Zxid(rapid.IntRange(-1, 3).Draw(t, "back"))
				if len(all) > 0 && rapid.Bool().Draw(t, "of a change") {
					since = rapid.SampledFrom(all).Draw(t, "change").zxid
				}
				var want []string
				size := 0
				for _, c := range all {
					if size += c.size; c.zxid > since {
						want = append(want, c.text)
					}
				}
				switch covers := h.Covers(since); {
				case covers && h.Limit <= 0:
					t.Fatal("nothing is kept")
				case covers && !slices.Equal(h.after(since), want):
					t.Fatalf("after %d: %q, want %q", since, h.after(since), want)
				case !covers && since >= reset && h.Limit > 10_000 && size < h.Limit/2:
					t.Fatalf("does not reach back to %d, although there were %d bytes since %d", since, size, reset)
				}
			},
		})
	})
}

// A change takes about as many bytes as are new.
func TestHistory_SharesPaths(t *testing.T) {
	h := History{Limit: 20_000}
	for z := range proto.Zxid(1000) {
		h.Add(z+1, proto.EventDataChanged, strings.Repeat("/application", 10), "")
	}
	if !h.Covers(0) {
		t.Errorf("1000 changes of a path do not fit: those after %d are known", h.oldest)
	}
}

// After ends when yield returns false.
func TestHistory_AfterEnds(t *testing.T) {
	h := History{Limit: 1 << 20}
	for z := range proto.Zxid(5) {
		h.Add(z+1, proto.EventCreated, "/a", "")
	}
	n := 0
	h.After(1, func(c Change) bool { n++; return c.Zxid < 3 })
	if n != 2 {
		t.Errorf("%d calls, want 2", n)
	}
}

// BenchmarkHistory_Add reports what a write pays.
func BenchmarkHistory_Add(b *testing.B) {
	h := History{Limit: 32 << 20}
	paths := samplePaths()
	b.ReportAllocs()
	var z proto.Zxid
	for b.Loop() {
		z++
		h.Add(z, proto.EventDataChanged, paths[z%proto.Zxid(len(paths))], "")
	}
	n := 0
	h.After(h.oldest, func(Change) bool { n++; return true })
	b.ReportMetric(float64(h.bytes)/float64(n), "bytes/change")
}

// samplePaths are paths of 47 bytes of 20,000 znodes in a random order.
func samplePaths() []string {
	r, paths := rand.New(rand.NewPCG(1, 1)), make([]string, 20_000)
	for i := range paths {
		paths[i] = fmt.Sprintf("/service/application-%02d/instance-%08d/state", r.IntN(20), r.IntN(1000))
	}
	return paths
}

// BenchmarkHistory_After reads a history of 8 MiB.
func BenchmarkHistory_After(b *testing.B) {
	h, paths := History{Limit: 8 << 20}, samplePaths()
	for z := range proto.Zxid(1_000_000) {
		h.Add(z, proto.EventDataChanged, paths[int(z)%len(paths)], "")
	}
	n := 0
	for b.Loop() {
		h.After(h.oldest, func(Change) bool { n++; return true })
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/change")
}
