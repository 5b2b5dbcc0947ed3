package cli

import "context"

// Input reads for one goroutine at a time where a read cannot be interrupted, as at a terminal.
type Input[T any] struct {
	read    func() (T, error)
	results chan result[T] // capacity 1: a read must be able to end when nobody waits
	reading bool           // a read is under way
}

type result[T any] struct {
	value T
	err   error
}

// NewInput returns an Input that calls read, never twice at the same time.
func NewInput[T any](read func() (T, error)) *Input[T] {
	return &Input[T]{read: read, results: make(chan result[T], 1)}
}

// Next returns the result of the next read, or the error of ctx and leaves it to the next call.
func (i *Input[T]) Next(ctx context.Context) (value T, err error) {
	if !i.reading {
		i.reading = true
		// Ends with the read, which this or the next call awaits, if the program does not exit.
		go func() {
			value, err := i.read()
			i.results <- result[T]{value, err}
		}()
	}
	select {
	case r := <-i.results:
		i.reading = false
		return r.value, r.err
	case <-ctx.Done():
		return value, ctx.Err()
	}
}
