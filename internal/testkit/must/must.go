// Package must ends the work of a test program at its first error, as FailNow of testing.T ends a
// test: Do and Get panic, deferred calls clean up, and Try, which runs the work, returns the error.
// All is for work in several goroutines.
package must

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/gozkd/gozkd/internal/backoff"
	"github.com/gozkd/gozkd/internal/parallel"
)

// failure is the value of the panics of this package.
type failure struct{ err error }

// Do ends the work if err is not nil.
func Do(err error) {
	if err != nil {
		end(err)
	}
}

// Get returns v, or ends the work if err is not nil.
func Get[T any](v T, err error) T {
	if err != nil {
		end(err)
	}
	return v
}

// Get2 is Get for functions with two results.
func Get2[T, U any](v T, u U, err error) (T, U) {
	if err != nil {
		end(err)
	}
	return v, u
}

// end panics with err and the line that called the function that called end.
func end(err error) {
	if _, file, line, ok := runtime.Caller(2); ok {
		err = fmt.Errorf("%s:%d: %w", filepath.Base(file), line, err)
	}
	panic(failure{err})
}

// Failf ends the work with the error of fmt.Errorf.
func Failf(format string, args ...any) { end(fmt.Errorf(format, args...)) }

// Try runs work and returns the error that ended it. Other panics pass.
func Try(work func()) (err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case failure:
			err = r.err
		default:
			panic(r)
		}
	}()
	work()
	return nil
}

// Doing runs work and puts what before the error that ends it.
func Doing(what string, work func()) {
	if err := Try(work); err != nil {
		panic(failure{fmt.Errorf("%s: %w", what, err)})
	}
}

// Await repeats check until it succeeds. It ends the work with the last error after limit, or when
// ctx ends.
func Await(ctx context.Context, limit time.Duration, what string, check func() error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for err := check(); err != nil; err = check() {
		if !backoff.Sleep(ctx, 20*time.Millisecond) {
			end(fmt.Errorf("not within %v: %s: %w", limit, what, err))
		}
	}
}

// Sleep ends the work if ctx ends before d has passed.
func Sleep(ctx context.Context, d time.Duration) {
	if !backoff.Sleep(ctx, d) {
		end(ctx.Err())
	}
}

// All runs all works in parallel, and returns when all have ended.
func All(works ...func()) {
	errs := parallel.Each(len(works), len(works), func(i int) error { return Try(works[i]) })
	if err := errors.Join(errs...); err != nil {
		panic(failure{err})
	}
}

// Each calls work with each number below n, jobs of them at once, and returns when all have ended.
func Each(jobs, n int, work func(i int)) {
	var next atomic.Int64
	All(slices.Repeat([]func(){func() {
		for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
			work(i)
		}
	}}, jobs)...)
}

// Finally is for defer: it calls cleanUp, and joins its error to the error that ends the work.
func Finally(cleanUp func() error) {
	switch r := recover().(type) {
	case nil:
		Do(cleanUp())
	case failure:
		panic(failure{errors.Join(r.err, cleanUp())})
	default:
		panic(r)
	}
}
