package peer

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/gozkd/gozkd/internal/memberid"
)

// Refusal is why an incoming connection was refused.
type Refusal int

// The reasons.
const (
	RefusedMalformed   Refusal = iota // no hello, or damaged
	RefusedVersion                    // another version of the protocol
	RefusedSilent                     // no hello in time
	RefusedUnknown                    // from or to a member that is not configured
	RefusedImpostor                   // the member that it names has not made it
	RefusedUnreachable                // the member that it names could not be asked
	RefusedNoSecret                   // the caller has no ensemble secret
	RefusedSecret                     // the caller has another ensemble secret
	RefusedByMember                   // of another ensemble, or without support of its feature level
	RefusedCrowded                    // too many connections at once
	RefusedPlain                      // without TLS
	RefusedTLS                        // the TLS handshake has failed
	RefusedCertificate                // the certificate is another member's
	refusals
)

// String returns the reason as metrics name it.
func (r Refusal) String() string {
	return [...]string{"malformed", "version", "silent", "unknown_member", "impostor", "unreachable", "no_secret", "wrong_secret", "rejected", "crowded", "plain", "tls", "certificate"}[r]
}

// refuse returns an error whose text is sent to the other side. Each uint64 of args is the id of a
// member, of which the text has the number.
func refuse(reason Refusal, format string, args ...any) error {
	return &rejectedError{reason: reason, err: fmt.Errorf(format, withNumbers(args)...)}
}

// withNumbers replaces the ids of members, the only uint64 of args, by the numbers.
func withNumbers(args []any) []any {
	for i, arg := range args {
		if id, ok := arg.(uint64); ok {
			args[i] = memberid.Number(id)
		}
	}
	return args
}

// refusalOf returns why a connection was refused. ok is false if it was accepted before it ended.
func refusalOf(err error, accepted bool) (reason Refusal, ok bool) {
	var rejected *rejectedError
	var version *versionError
	switch {
	case errors.As(err, &rejected):
		return rejected.reason, true
	case err == nil || accepted:
		return 0, false
	case errors.As(err, &version):
		return RefusedVersion, true
	case errors.Is(err, ErrSilent):
		return RefusedSilent, true
	}
	return RefusedMalformed, true
}

type refusalCounts [refusals]atomic.Int64

// Refused returns how many incoming connections were refused, by reason.
func (n *Network) Refused() map[string]int64 {
	counts := make(map[string]int64, refusals)
	for r := range refusals {
		counts[r.String()] = n.refused[r].Load()
	}
	return counts
}

// refusalLogInterval is the least time between two lines about connections that were refused for
// the same reason before their callers had proved their identities.
const refusalLogInterval = time.Minute
