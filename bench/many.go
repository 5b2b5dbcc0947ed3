//go:build linux

package main

import (
	"context"

	"github.com/gozkd/gozkd/internal/testkit/must"
)

const perParent = 1000 // znodes

// manyPath returns the path of the i-th of up to ten million znodes, a thousand per parent. fmt
// would take a large part of a request's time.
func manyPath(i int) string {
	b := [...]byte{'/', 'p', 0, 0, 0, 0, '/', 'n', 0, 0, 0, 0, 0, 0, 0}
	digits(b[2:6], i/perParent)
	digits(b[8:], i)
	return string(b[:])
}

// digits writes the last len(b) digits of v.
func digits(b []byte, v int) {
	for i := len(b) - 1; i >= 0; i-- {
		b[i] = '0' + byte(v%10)
		v /= 10
	}
}

// fillMany creates n znodes at these paths.
func fillMany(ctx context.Context, addr string, n int, data []byte) {
	parents := (n + perParent - 1) / perParent
	fillAt(ctx, addr, parents, nil, func(i int) string { return manyPath(i * perParent)[:len("/p0000")] })
	fillAt(ctx, addr, n, data, manyPath)
}

// until returns w, ending when ctx ends.
func (w *workload) until(ctx context.Context) *workload {
	const every = 64 // checking costs more than making a request
	asked := 0
	copied := *w
	copied.next = func(c *client) bool {
		if asked++; asked%every == 0 && ctx.Err() != nil {
			return false
		}
		return w.next(c)
	}
	return &copied
}

// fillAt creates n znodes over 16 connections. It returns ctx's error if ctx ends first.
func fillAt(ctx context.Context, addr string, n int, data []byte, path func(i int) string) {
	const connections, window = 16, 64
	runOnce(target{addrs: []string{addr}}, shape{connections, window}, creates(connections, n, data, path).until(ctx), 0)
	must.Do(ctx.Err())
}
