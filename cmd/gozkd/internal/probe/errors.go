package probe

import (
	"errors"
	"fmt"
	"net"
	"os"
	"time"
)

// Refusals, wrapped by the *Error of Ask.
var (
	// ErrNotAllowed: the word is not in the server's whitelist.
	ErrNotAllowed = errors.New("the word is not in the server's whitelist")
	// ErrNotServing: the server runs, but has no leader.
	ErrNotServing = errors.New("not part of a quorum, so not serving")
	// ErrNoAnswer: the server closed the connection without an answer. Servers do that for an
	// unknown word, and above their connection limit.
	ErrNoAnswer = errors.New("the connection was closed without an answer")
	// ErrTooLarge: the answer exceeds the limit.
	ErrTooLarge = errors.New("the answer is too long")
)

// WhitelistKey is the key of zoo.cfg that lists the words that a server answers.
const WhitelistKey = "4lw.commands.whitelist"

// Error is the error of asking a server a word.
type Error struct {
	Address, Word string
	Err           error
}

// Error returns address, word and cause in one line.
func (e *Error) Error() string { return e.Address + ": " + e.Word + ": " + e.Cause() }

// Cause returns the reason without the address, for example "connection refused", "no answer within
// 5s", or which key to set in zoo.cfg.
func (e *Error) Cause() string {
	if errors.Is(e.Err, ErrNotAllowed) {
		return fmt.Sprintf("not in the whitelist: add %s to %s in zoo.cfg", e.Word, WhitelistKey)
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

// timeoutError is the error after a timeout of Ask.
type timeoutError time.Duration

func (t timeoutError) Error() string { return "no answer within " + time.Duration(t).String() }

// Timeout and Is let callers recognize a timeout as for errors of net and os.
func (t timeoutError) Timeout() bool        { return true }
func (t timeoutError) Is(target error) bool { return target == os.ErrDeadlineExceeded }
