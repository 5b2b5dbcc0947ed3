package datatree

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/gozkd/gozkd/proto"
)

var pageChildren = flag.Int("children", 1_000_000, "the children of a znode in BenchmarkPage")

// BenchmarkPage reads pages of 1,000 names at random places of a long list, a creation and a
// deletion per page. It reports the building of the index, the longest part of that under one lock,
// and the time of pages and of changes with and without the index.
func BenchmarkPage(b *testing.B) {
	n := *pageChildren
	l := &limited{tree: New(Options{})}
	l.createAt("/p", nil)
	name := func(i int) string { return fmt.Sprintf("/p/%016x", uint64(i)*0x9e3779b97f4a7c15) }
	for i := range n {
		l.createAt(name(i), nil)
	}
	bodies := func() (create, remove []Request) {
		for i := range 100_000 {
			path := name(n + i)
			create = append(create, Request{Op: proto.OpCreate, Body: (&proto.CreateRequest{Path: path, ACL: proto.OpenACL()}).Append(nil, proto.OpCreate)})
			remove = append(remove, Request{Op: proto.OpDelete, Body: (&proto.PathVersionRequest{Path: path, Version: -1}).Append(nil)})
		}
		return create, remove
	}
	create, remove := bodies()
	apply := func(requests []Request) time.Duration {
		begin := time.Now()
		for i := range requests {
			if res, _ := l.tree.Apply(Header{Zxid: l.tree.LastZxid() + 1, TimeMs: 1}, &requests[i]); res.Err != proto.OK {
				b.Fatal(res.Err)
			}
		}
		return time.Since(begin) / time.Duration(len(requests))
	}
	without := float64(apply(create)+apply(remove)) / 2
	page := func(after string) (*string, time.Duration) {
		begin := time.Now()
		p, code := l.tree.Page(&proto.ListPageRequest{Path: "/p", StartAfter: after, Limit: 1000}, pagesReader)
		if code != proto.OK {
			b.Fatal(code)
		}
		return p.Next, time.Since(begin)
	}
	var slice, build time.Duration
	for next := new(string); *next == ""; {
		var took time.Duration
		next, took = page("")
		slice, build = max(slice, took), build+took
	}
	with := float64(apply(create)+apply(remove)) / 2
	var pages []time.Duration
	for b.Loop() {
		i := len(pages) % len(create)
		apply(create[i : i+1])
		_, took := page(fmt.Sprintf("%016x", rand.Uint64()>>1))
		pages = append(pages, took)
		apply(remove[i : i+1])
	}
	b.ReportMetric(without, "ns/change-without")
	b.ReportMetric(with, "ns/change-with")
	b.ReportMetric(build.Seconds(), "s/build")
	b.ReportMetric(float64(slice.Microseconds()), "us/longest-slice")
	slices.Sort(pages)
	b.ReportMetric(float64(pages[len(pages)/2].Microseconds()), "us/page-median")
	b.ReportMetric(float64(pages[len(pages)*99/100].Microseconds()), "us/page-p99")
	b.ReportMetric(float64(pages[len(pages)-1].Microseconds()), "us/page-max")
}
