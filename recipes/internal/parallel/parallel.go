// Package parallel makes several calls at a time.
package parallel

import (
	"errors"
	"sync"
)

// maxConcurrent is how many calls Each makes at a time.
const maxConcurrent = 64

// Each calls f for 0 to n-1, maxConcurrent at a time, and joins the errors.
func Each(n int, f func(i int) error) error {
	var wg sync.WaitGroup
	slots, errs := make(chan struct{}, maxConcurrent), make([]error, n)
	for i := range n {
		if i == n-1 { // without another goroutine
			errs[i] = f(i)
			break
		}
		slots <- struct{}{}
		// Ends with f; awaited below.
		wg.Go(func() {
			defer func() { <-slots }()
			errs[i] = f(i)
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}
