package probe

import (
	"errors"
	"fmt"
	"net"
	"os"
	"time"
)

// Answers that say nothing of what was asked for, under an *Error of Ask.
var (
	// ErrNotAllowed: the word is not in the server's whitelist.
	ErrNotAllowed = errors.New("the word is not in the server's whitelist")
	// ErrNotServing: the server runs and has no leader that it could serve under.
	ErrNotServing = errors.New("not part of a quorum, so not serving")
	// ErrNoAnswer: the connection was closed without a byte. So ends a word that the server does not know, and a connection
	// beyond its limit of those.
	ErrNoAnswer = errors.New("the connection was closed without an answer")
	// ErrTooLarge: the answer is longer than the bound.
	ErrTooLarge = errors.New("the answer is too long")
)

// WhitelistKey is the key of zoo.cfg with the words that a server answers.
const WhitelistKey = "4lw.commands.whitelist"

// Error says which server did not answer which word, and why.
type Error struct {
	Address, Word string
	Err           error
}

// Error returns address, word and cause in one line.
func (e *Error) Error() string { return e.Address + ": " + e.Word + ": " + e.Cause() }

// Cause returns why, without the address: "connection refused", "no answer within 5s", or which key to set in the server's zoo.cfg.
func (e *Error) Cause() string {
	if errors.Is(e.Err, ErrNotAllowed) {
		return fmt.Sprintf("not in the whitelist: add %s to %s in zoo.cfg", e.Word, WhitelistKey)
	}
	// The net package repeats the addresses around the cause, and the system call in front of it.
	cause := e.Err
	if op := (*net.OpError)(nil); errors.As(cause, &op) {
		cause = op.Err
	}
	if dns := (*net.DNSError)(nil); errors.As(cause, &dns) {
		return fmt.Sprintf("the name %s can't be resolved: %s", dns.Name, dns.Err)
	}
	if sys := (*os.SyscallError)(nil); errors.As(cause, &sys) {
		cause = sys.Err
	}
	return cause.Error()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Cause returns what to show of an error beside an address: the Cause of an *Error, or the whole text of another.
func Cause(err error) string {
	if e := (*Error)(nil); errors.As(err, &e) {
		return e.Cause()
	}
	return err.Error()
}

// Reached reports whether the server did answer, though perhaps not the question: it lives.
func Reached(err error) bool {
	return err == nil || errors.Is(err, ErrNotAllowed) || errors.Is(err, ErrNotServing) || errors.Is(err, ErrTooLarge)
}

// timeoutError is how long Ask waited in vain.
type timeoutError time.Duration

func (t timeoutError) Error() string { return "no answer within " + time.Duration(t).String() }

// Timeout and Is make it what callers of the net and os packages test for.
func (t timeoutError) Timeout() bool        { return true }
func (t timeoutError) Is(target error) bool { return target == os.ErrDeadlineExceeded }
