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
	// DefaultTimeout bounds a word, from dialing to the end of the answer.
	DefaultTimeout = 5 * time.Second
	// DefaultMaxBytes bounds an answer: about 30,000 lines of cons.
	DefaultMaxBytes = 8 << 20
)

// Asker asks servers. The zero value is ready to use. An Asker is safe for concurrent use if Dial
// is.
type Asker struct {
	// Timeout bounds each word. Default: DefaultTimeout.
	Timeout time.Duration
	// MaxBytes bounds an answer. Default: DefaultMaxBytes.
	MaxBytes int64
	// Dial connects to a server. Default: TCP.
	Dial func(ctx context.Context, address string) (net.Conn, error)
}

// Ask sends a word to the client address (host:port) of a server and returns the answer, which ends
// when the server closes the connection.
//
// Errors are of type *Error. They wrap ErrNotAllowed, ErrNotServing, ErrNoAnswer or ErrTooLarge if
// the server was reached, otherwise the cause. With ErrTooLarge, Ask also returns the beginning of
// the answer.
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

// exchange sends a word and reads the answer.
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
	// Closing the connection also ends the exchange when ctx is canceled; a deadline would not.
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() }) // the exchange fails then
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

// refusal returns the error if the answer is a refusal.
func refusal(answer, word string) error {
	switch {
	case strings.HasPrefix(answer, notServing):
		return ErrNotServing
	case strings.HasPrefix(answer, word+" is not executed because it is not in the whitelist"):
		return ErrNotAllowed
	}
	return nil
}

// notServing begins the answer of a server without a leader. Source: ZooKeeper
// AbstractFourLetterCommand.
const notServing = "This ZooKeeper instance is not currently serving requests"
