// Package parallel makes calls at the same time.
package parallel

import "sync"

// Each calls f for 0 to n-1, at most limit at a time, and returns the errors in this order.
func Each(n, limit int, f func(i int) error) []error {
	errs := make([]error, n)
	slots := make(chan struct{}, limit)
	var calls sync.WaitGroup
	for i := range n {
		if i == n-1 { // without another goroutine
			errs[i] = f(i)
			break
		}
		slots <- struct{}{}
		calls.Go(func() { // ends with f; awaited below
			defer func() { <-slots }()
			errs[i] = f(i)
		})
	}
	calls.Wait()
	return errs
}
