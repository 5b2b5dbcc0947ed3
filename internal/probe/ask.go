package probe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"

	"github.com/gozkd/gozkd/internal/neterr"
)

const (
	// DefaultTimeout bounds a word, from dialing to the end of the answer.
	DefaultTimeout = neterr.FirstAnswer
	// DefaultMaxBytes bounds an answer: about 30,000 lines of cons.
	DefaultMaxBytes = 8 << 20
)

// Asker asks servers. The zero value is ready to use, and safe for concurrent use if Dial is.
type Asker struct {
	// Timeout bounds each word. Default: DefaultTimeout.
	Timeout time.Duration
	// MaxBytes bounds an answer. Default: DefaultMaxBytes.
	MaxBytes int64
	// Dial connects to a server. Default: TCP.
	Dial func(ctx context.Context, address string) (net.Conn, error)
	// Advise returns the remedy for an error of a server that was not reached, or nil. It must
	// return when ctx ends. It may be nil. See neterr.Advised.
	Advise func(ctx context.Context, address string, err error) error
}

// Bound returns a context that ends after Timeout, with the error of a server that did not answer
// in time. Several words that are asked with it share one limit.
func (a Asker) Bound(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, a.limit(), neterr.NoAnswer(a.limit()))
}

func (a Asker) limit() time.Duration { return cmp.Or(a.Timeout, DefaultTimeout) }

// Ask sends a word to the client address (host:port) of a server and returns the answer, which ends
// when the server closes the connection. Ask returns within Timeout.
//
// Errors are *Error. They wrap ErrNotAllowed, ErrNotServing, ErrNoAnswer or ErrTooLarge if the
// server was reached, otherwise the cause. ErrTooLarge comes with the beginning of the answer.
func (a Asker) Ask(ctx context.Context, address, word string) (string, error) {
	bounded, cancel := a.Bound(ctx)
	defer cancel()
	// A port that speaks TLS waits silently for the rest of a record. The advice about silence is
	// therefore sought while the exchange still waits, so that both end within the limit.
	seeking, stop := context.WithCancel(bounded)
	advice, sought := error(nil), make(chan struct{})
	seek := time.AfterFunc(a.limit()/2, func() {
		defer close(sought)
		advice = a.advise(seeking, address, neterr.NoAnswer(a.limit()))
	})
	answer, err := a.exchange(bounded, address, word)
	if err == nil {
		err = refusal(answer, word)
	}
	if !errors.Is(err, ErrTooLarge) {
		err = neterr.Ended(bounded, err)
	}
	if stop(); !seek.Stop() {
		<-sought
	}
	if err != nil && bounded.Err() == nil { // there may be no time for advice
		if better := a.advise(bounded, address, err); better != nil {
			advice = better
		}
	}
	switch {
	case err == nil:
		return answer, nil
	case errors.Is(err, ErrTooLarge):
		return answer, &Error{Address: address, Word: word, Err: err}
	}
	return "", &Error{Address: address, Word: word, Err: err, Advice: advice}
}

// advise returns the advice about an error, or "".
func (a Asker) advise(ctx context.Context, address string, err error) error {
	if a.Advise == nil || Reached(err) {
		return nil
	}
	return a.Advise(ctx, address, err)
}

func (a Asker) exchange(ctx context.Context, address, word string) (string, error) {
	dial, limit := a.Dial, cmp.Or(a.MaxBytes, DefaultMaxBytes)
	if dial == nil {
		dial = func(ctx context.Context, address string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", address)
		}
	}
	conn, err := dial(ctx, address)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	// Closing the connection also ends the exchange when ctx is canceled; a deadline would not.
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() }) // the exchange fails then
	defer stop()
	var answer strings.Builder
	n := int64(0)
	if _, err = io.WriteString(conn, word); err == nil {
		n, err = io.Copy(&answer, io.LimitReader(conn, limit+1))
	}
	switch {
	case n > limit:
		return answer.String()[:limit], ErrTooLarge
	case n == 0 && (err == nil || neterr.TLSReason(err) == neterr.HungUp):
		return "", ErrNoAnswer
	case err != nil:
		return "", err
	}
	return answer.String(), nil
}

// refusal returns the error of an answer that is a refusal, or of a port for something else.
func refusal(answer, word string) error {
	switch {
	case strings.HasPrefix(answer, notServing):
		return ErrNotServing
	case strings.HasPrefix(answer, word+" is not executed because it is not in the whitelist"):
		return ErrNotAllowed
	}
	return neterr.AsWrongPort([]byte(answer))
}

// notServing begins the answer of a server without a leader. Source: AbstractFourLetterCommand.
const notServing = "This ZooKeeper instance is not currently serving requests"

// Refusals, wrapped by the *Error of Ask.
var (
	// ErrNotAllowed: the word is not in the server's whitelist.
	ErrNotAllowed = errors.New("the word is not in the server's whitelist")
	// ErrNotServing: the server runs, but has no leader.
	ErrNotServing = errors.New("not part of a quorum, so not serving")
	// ErrNoAnswer: the server closed the connection without an answer. Servers do that for an
	// unknown word, and above their connection limit.
	ErrNoAnswer = neterr.ErrNoAnswer
	// ErrTooLarge: the answer exceeds the limit.
	ErrTooLarge = errors.New("the answer is too long")
)

// Error is the error of asking a server a word.
type Error struct {
	Address, Word string
	Err           error
	Advice        error // of Asker.Advise
}

// Error returns address, word and cause in one line.
func (e *Error) Error() string { return e.Address + ": " + e.Word + ": " + e.Cause() }

// Cause returns the reason without the address, for example "connection refused", "no answer within
// 5s", or which key to set in zoo.cfg.
func (e *Error) Cause() string {
	return neterr.Advised(errors.New(e.cause()), e.Advice).Error()
}

func (e *Error) cause() string {
	if errors.Is(e.Err, ErrNotAllowed) {
		return fmt.Sprintf("not in the whitelist: add %s to 4lw.commands.whitelist in zoo.cfg", e.Word)
	}
	// The net package repeats the addresses and the system call.
	cause := e.Err
	if op := (*net.OpError)(nil); errors.As(cause, &op) {
		cause = op.Err
	}
	if dns := (*net.DNSError)(nil); errors.As(cause, &dns) {
		return fmt.Sprintf("cannot resolve %s: %s", dns.Name, dns.Err)
	}
	if sys := (*os.SyscallError)(nil); errors.As(cause, &sys) {
		cause = sys.Err
	}
	return cause.Error()
}

// Unwrap returns the wrapped error.
func (e *Error) Unwrap() error { return e.Err }

// Cause returns the text of an error to show beside the address.
func Cause(err error) string {
	if e := (*Error)(nil); errors.As(err, &e) {
		return e.Cause()
	}
	return err.Error()
}

// Reached reports whether the server answered, even with a refusal: then the server is alive.
func Reached(err error) bool {
	return err == nil || errors.Is(err, ErrNotAllowed) || errors.Is(err, ErrNotServing) || errors.Is(err, ErrTooLarge)
}
