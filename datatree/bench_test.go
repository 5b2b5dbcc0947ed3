package datatree

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/gozkd/gozkd/proto"
)

// benchTree has n znodes with 100 bytes of data below 100 parents.
func benchTree(b *testing.B, n int) (*Tree, []string) {
	b.Helper()
	t := New(Options{})
	zxid := proto.Zxid(0)
	data := make([]byte, 100)
	create := func(path string) {
		zxid++
		body := (&proto.CreateRequest{Path: path, Data: data, ACL: proto.OpenACL()}).Append(nil, proto.OpCreate)
		if res, _ := t.Apply(Header{zxid, 1}, &Request{Op: proto.OpCreate, Body: body}); res.Err != proto.OK {
			b.Fatal(res.Err)
		}
	}
	for i := range 100 {
		create(fmt.Sprintf("/parent%02d", i))
	}
	paths := make([]string, n)
	for i := range paths {
		paths[i] = fmt.Sprintf("/parent%02d/znode%08d", i%100, i)
		create(paths[i])
	}
	return t, paths
}

// BenchmarkMemory reports the live heap that a znode takes beyond its 100 bytes of data, at
// 1,000,000 znodes.
func BenchmarkMemory(b *testing.B) {
	const n = 1_000_000
	for b.Loop() {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		t, _ := benchTree(b, n)
		runtime.GC()
		runtime.GC() // the second collection frees what the sweep of the first found
		runtime.ReadMemStats(&after)
		b.ReportMetric((float64(after.HeapAlloc)-float64(before.HeapAlloc))/n-100, "B/znode")
		runtime.KeepAlive(t)
	}
}

func BenchmarkGetData(b *testing.B) {
	for _, n := range []int{1000, 1_000_000} {
		b.Run(fmt.Sprintf("znodes=%d", n), func(b *testing.B) {
			t, paths := benchTree(b, n)
			c := Caller{IDs: []proto.ID{{Scheme: "ip", ID: "127.0.0.1"}}}
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				if _, _, code := t.GetData(paths[i*7919%len(paths)], c); code != proto.OK {
					b.Fatal(code)
				}
				i++
			}
		})
	}
}

// BenchmarkPrefetch reads and sets random znodes of a large tree, 16 in a row, with and without
// Prefetch. Times are per request.
func BenchmarkPrefetch(b *testing.B) {
	t, paths := benchTree(b, 1_000_000)
	rand.Shuffle(len(paths), func(i, j int) { paths[i], paths[j] = paths[j], paths[i] })
	var text []byte // a server has the paths of such requests side by side
	for _, path := range paths {
		text = append(text, path...)
	}
	for i, path := range paths {
		paths[i] = textOf(text[i*len(path):][:len(path)])
	}
	ids := []proto.ID{{Scheme: "ip", ID: "127.0.0.1"}}
	set := Request{Op: proto.OpSetData}
	for _, row := range []struct {
		name string
		do   func(path string) proto.ErrCode
	}{
		{"get", func(path string) proto.ErrCode {
			_, _, code := t.GetData(path, Caller{IDs: ids})
			return code
		}},
		{"set", func(path string) proto.ErrCode {
			set.Body = (&proto.SetDataRequest{Path: path, Data: make([]byte, 100), Version: -1}).Append(set.Body[:0])
			res, _ := t.Apply(Header{t.LastZxid() + 1, 1}, &set)
			return res.Err
		}},
	} {
		for _, prefetch := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/prefetch=%v", row.name, prefetch), func(b *testing.B) {
				next := 0
				for b.Loop() {
					window := paths[next:][:PrefetchPaths]
					if next += PrefetchPaths; next+PrefetchPaths > len(paths) {
						next = 0
					}
					if prefetch {
						t.Prefetch(window)
					}
					for _, path := range window {
						if code := row.do(path); code != proto.OK {
							b.Fatal(code)
						}
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*PrefetchPaths), "ns/request")
			})
		}
	}
}

func BenchmarkAppendChildren(b *testing.B) {
	t, _ := benchTree(b, 100_000)
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		var code proto.ErrCode
		if buf, _, code = t.AppendChildren(buf[:0], "/parent07", Caller{}); code != proto.OK {
			b.Fatal(code)
		}
	}
}

func BenchmarkSetData(b *testing.B) {
	for _, track := range []bool{false, true} {
		b.Run(fmt.Sprintf("dirty=%v", track), func(b *testing.B) {
			t, paths := benchTree(b, 100_000)
			if track {
				t.dirty = newChanges()
			}
			bodies := make([][]byte, len(paths))
			for i, path := range paths {
				bodies[i] = (&proto.SetDataRequest{Path: path, Data: make([]byte, 100), Version: -1}).Append(nil)
			}
			r := Request{Op: proto.OpSetData}
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				r.Body = bodies[i*7919%len(bodies)]
				if res, _ := t.Apply(Header{t.LastZxid() + 1, 1}, &r); res.Err != proto.OK {
					b.Fatal(res.Err)
				}
				i++
			}
		})
	}
}

func BenchmarkCreateDelete(b *testing.B) {
	t, _ := benchTree(b, 100_000)
	create := Request{Op: proto.OpCreate, Body: (&proto.CreateRequest{Path: "/parent07/new", Data: make([]byte, 100), ACL: proto.OpenACL()}).Append(nil, proto.OpCreate)}
	remove := Request{Op: proto.OpDelete, Body: (&proto.PathVersionRequest{Path: "/parent07/new", Version: -1}).Append(nil)}
	b.ReportAllocs()
	for b.Loop() {
		for _, r := range []*Request{&create, &remove} {
			if res, _ := t.Apply(Header{t.LastZxid() + 1, 1}, r); res.Err != proto.OK {
				b.Fatal(res.Err)
			}
		}
	}
}

// BenchmarkCreateBelow creates znodes below parents that get that many children each, from an empty
// tree on. Compare equal numbers of znodes: -benchtime 1000000x.
func BenchmarkCreateBelow(b *testing.B) {
	for _, children := range []int{1000, 50_000, 1_000_000} {
		b.Run(fmt.Sprintf("children=%d", children), func(b *testing.B) {
			t, data, body, parent := New(Options{TrackDirty: true}), make([]byte, 100), []byte(nil), ""
			create := func(path string) {
				body = (&proto.CreateRequest{Path: path, Data: data, ACL: proto.OpenACL()}).Append(body[:0], proto.OpCreate)
				if res, _ := t.Apply(Header{t.LastZxid() + 1, 1}, &Request{Op: proto.OpCreate, Body: body}); res.Err != proto.OK {
					b.Fatal(res.Err)
				}
			}
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				if i%children == 0 {
					parent = fmt.Sprintf("/parent%04d", i/children)
					create(parent)
				}
				create(fmt.Sprintf("%s/znode%08d", parent, i))
				if i++; i%100_000 == 0 {
					t.Capture() // otherwise the notes for the checkpoint would pile up
				}
			}
		})
	}
}

// BenchmarkCreateDeleteBelowData creates and deletes a znode whose parent has data.
func BenchmarkCreateDeleteBelowData(b *testing.B) {
	for _, kib := range []int{1, 16, 100, 1024} {
		b.Run(fmt.Sprintf("KiB=%d", kib), func(b *testing.B) {
			t, _ := benchTree(b, 1000)
			set := Request{Op: proto.OpSetData, Body: (&proto.SetDataRequest{Path: "/parent07", Data: make([]byte, kib<<10), Version: -1}).Append(nil)}
			create := Request{Op: proto.OpCreate, Body: (&proto.CreateRequest{Path: "/parent07/new", ACL: proto.OpenACL()}).Append(nil, proto.OpCreate)}
			remove := Request{Op: proto.OpDelete, Body: (&proto.PathVersionRequest{Path: "/parent07/new", Version: -1}).Append(nil)}
			t.Apply(Header{t.LastZxid() + 1, 1}, &set)
			b.ReportAllocs()
			for b.Loop() {
				for _, r := range []*Request{&create, &remove} {
					if res, _ := t.Apply(Header{t.LastZxid() + 1, 1}, r); res.Err != proto.OK {
						b.Fatal(res.Err)
					}
				}
			}
		})
	}
}

// BenchmarkCreateSequential creates sequential znodes, as for a queue or a lock, in one growing
// parent.
func BenchmarkCreateSequential(b *testing.B) {
	t, _ := benchTree(b, 1000)
	r := Request{Op: proto.OpCreate, Body: (&proto.CreateRequest{Path: "/parent07/s-", Data: make([]byte, 100), ACL: proto.OpenACL(), Mode: 2}).Append(nil, proto.OpCreate)}
	b.ReportAllocs()
	for b.Loop() {
		if res, _ := t.Apply(Header{t.LastZxid() + 1, 1}, &r); res.Err != proto.OK {
			b.Fatal(res.Err)
		}
	}
}

// BenchmarkCapture writes a checkpoint of 100,000 changed znodes.
func BenchmarkCapture(b *testing.B) {
	t, _ := benchTree(b, 100_000)
	all := t.CaptureAll()
	b.Run("CaptureAll", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			t.CaptureAll()
		}
	})
	b.Run("Range", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := all.Range(func(_, _ []byte) error { return nil }); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkRestore restores a checkpoint. Keys and values are scattered in memory here; in a
// checkpoint file they are consecutive.
func BenchmarkRestore(b *testing.B) {
	for _, n := range []int{1000, 100_000, 1_000_000} {
		b.Run(fmt.Sprintf("znodes=%d", n), func(b *testing.B) {
			t, _ := benchTree(b, n)
			type pair struct{ key, value []byte }
			var pairs []pair
			_ = t.CaptureAll().Range(func(key, value []byte) error { // never fails
				pairs = append(pairs, pair{key, value})
				return nil
			})
			b.ReportAllocs()
			for b.Loop() {
				_, err := Restore(Options{}, func(yield func(key, value []byte) bool) {
					for _, p := range pairs {
						if !yield(p.key, p.value) {
							return
						}
					}
				})
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
