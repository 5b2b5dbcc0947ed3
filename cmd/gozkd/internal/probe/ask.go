package probe

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"time"
)

const (
	// DefaultTimeout is how long one word may take, from dialing to the end of the answer.
	DefaultTimeout = 5 * time.Second
	// DefaultMaxBytes bounds an answer: some 30000 lines of cons.
	DefaultMaxBytes = 8 << 20
)

// Asker asks servers. Its zero value is ready; safe for concurrent use, as long as Dial is.
type Asker struct {
	// Timeout bounds each word; 0: DefaultTimeout. A ctx that ends earlier does, too.
	Timeout time.Duration
	// MaxBytes bounds an answer; 0: DefaultMaxBytes.
	MaxBytes int64
	// Dial connects; nil: TCP.
	Dial func(ctx context.Context, address string) (net.Conn, error)
}

// Ask sends a word to the client address host:port of a server and returns what it answered before it closed the connection.
//
// An error is an *Error. Under it are ErrNotAllowed, ErrNotServing, ErrNoAnswer and ErrTooLarge, with which the server was
// reached, or what came in the way of reaching it. With ErrTooLarge the answer is what fits.
func (a Asker) Ask(ctx context.Context, address, word string) (string, error) {
	timeout := a.Timeout
	if timeout == 0 {
		timeout = DefaultTimeout
	}
	bounded, cancel := context.WithTimeoutCause(ctx, timeout, timeoutError(timeout))
	defer cancel()
	answer, err := a.exchange(bounded, address, word)
	if err == nil {
		err = refusal(answer, word)
	}
	if err == nil {
		return answer, nil
	}
	if cause := context.Cause(bounded); cause != nil && !errors.Is(err, ErrTooLarge) {
		err = cause
	}
	e := &Error{Address: address, Word: word, Err: err}
	if errors.Is(err, ErrTooLarge) {
		return answer, e
	}
	return "", e
}

// exchange is one connection: the word there, the answer back.
func (a Asker) exchange(ctx context.Context, address, word string) (string, error) {
	dial, limit := a.Dial, a.MaxBytes
	if dial == nil {
		dial = func(ctx context.Context, address string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", address)
		}
	}
	if limit == 0 {
		limit = DefaultMaxBytes
	}
	conn, err := dial(ctx, address)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	// Unlike a deadline this also ends the exchange when ctx is cancelled.
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() }) // the exchange sees that it was closed
	defer stop()
	if _, err := io.WriteString(conn, word); err != nil {
		return "", err
	}
	var answer strings.Builder
	n, err := io.Copy(&answer, io.LimitReader(conn, limit+1))
	switch {
	case n > limit:
		return answer.String()[:limit], ErrTooLarge
	case n == 0 && err == nil:
		return "", ErrNoAnswer
	case err != nil:
		return "", err
	}
	return answer.String(), nil
}

// refusal returns the error that an answer stands for, if it is none to the word.
func refusal(answer, word string) error {
	switch {
	case strings.HasPrefix(answer, notServing):
		return ErrNotServing
	case strings.HasPrefix(answer, word+" is not executed because it is not in the whitelist"):
		return ErrNotAllowed
	}
	return nil
}

// notServing begins the answer of a server that waits for a leader, or has lost it. Source: ZooKeeper AbstractFourLetterCommand.
const notServing = "This ZooKeeper instance is not currently serving requests"
