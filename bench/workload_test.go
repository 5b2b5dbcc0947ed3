//go:build linux

package main

import (
	"fmt"
	"testing"
)

// What a request costs this program before it is written, and what taking its reply costs: together
// they must be well below a microsecond, since the load runs beside the server.
func BenchmarkWorkload_Next(b *testing.B) {
	for _, w := range workloads() {
		b.Run(w.name, func(b *testing.B) {
			c := &client{index: 3, random: 1}
			b.ReportAllocs()
			for b.Loop() {
				w.next(c)
				if len(c.out) > 1<<16 {
					c.out = c.out[:0]
				}
			}
		})
	}
}

func BenchmarkClient_Answer(b *testing.B) {
	reply := append(make([]byte, 16), make([]byte, dataBytes)...)
	c := new(client)
	b.ReportAllocs()
	for b.Loop() {
		c.got = -1 // the reply's number is 0
		if err := c.answer(reply, len(reply)); err != nil {
			b.Fatal(err)
		}
	}
}

func TestMadePath(t *testing.T) {
	for _, at := range [][3]int{{0, 0, 0}, {7, 12345678, 7 + 14*maxLoad}, {127, 99_999_999, maxLoad*madeParents - 1}} {
		if got, want := madePath(at[0], at[1]), fmt.Sprintf("%s/%d/n%08d", madeParent, at[2], at[1]); got != want {
			t.Errorf("%d, %d: %s, want %s", at[0], at[1], got, want)
		}
	}
}

func TestBelowPath(t *testing.T) {
	if got, want := belowPath(999_999, "m", 127, 12_345_678), "/c999999/m0000012712345678"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// Each row of the command scale has a name of its own, and none that another command uses.
func TestScales(t *testing.T) {
	names := map[string]bool{}
	for _, w := range workloads() {
		names[w.name] = true
	}
	rows := 0
	for _, size := range scales(10_000_000) {
		for _, w := range size.rows {
			if names[w.name] {
				t.Errorf("row %q is there twice", w.name)
			}
			names[w.name] = true
			rows++
		}
	}
	if want := len(scaleKeys)*len(scaleRows) + len(scaleChildren); rows != want {
		t.Errorf("%d rows, want %d", rows, want)
	}
}

func TestManyPath(t *testing.T) {
	for i, want := range map[int]string{0: "/p0000/n0000000", 999_999: "/p0999/n0999999", 9_999_999: "/p9999/n9999999", 1234: "/p0001/n0001234"} {
		if got := manyPath(i); got != want {
			t.Errorf("%d: %s, want %s", i, got, want)
		}
	}
}
