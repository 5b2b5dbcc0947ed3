package shell

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/cli"
	"github.com/gozkd/gozkd/internal/printable"
	"github.com/gozkd/gozkd/proto"
)

// usageError is the error of a line that is wrong in itself. The shell prints the error and the
// usage of the command. A process that executes only this command exits with cli.Usage.
type usageError string

func (e usageError) Error() string { return string(e) }

// errUsage is a usageError that adds nothing to the usage.
const errUsage = usageError("")

// errNotConnected is printed on standard output, as zkCli.sh does.
var errNotConnected = errors.New("Not connected") //nolint:staticcheck // ZooKeeper's words

// failure is an error that is printed unchanged.
type failure string

func (e failure) Error() string { return string(e) }

// unreachable explains for each address why there is no session.
type unreachable struct{ failure }

// errFailed is the error of a command that has already printed the reason.
const errFailed = failure("")

type printed struct{ error }

func (p printed) Unwrap() error { return p.error }

func status(err error) int {
	switch {
	case err == nil:
		return cli.OK
	case errors.As(err, new(usageError)):
		return cli.Usage
	}
	return cli.Failed
}

// aboutPath holds the words of zkCli.sh for an error code, before the path.
var aboutPath = map[proto.ErrCode]string{
	proto.ErrNoNode:                  "Node does not exist: ",
	proto.ErrNoChildrenForEphemerals: "Ephemerals cannot have children: ",
	proto.ErrNodeExists:              "Node already exists: ",
	proto.ErrNotEmpty:                "Node not empty: ",
	proto.ErrNotReadOnly:             "Not a read-only call: ",
	proto.ErrInvalidACL:              "Acl is not valid : ",
	proto.ErrNoAuth:                  "Insufficient permission : ",
	proto.ErrBadArguments:            "Arguments are not valid : ",
	proto.ErrBadVersion:              "version No is not valid : ",
	proto.ErrQuotaExceeded:           "Quota has exceeded : ",
}

// message returns an error in zkCli.sh's words.
func message(err error) string {
	e, ok := errors.AsType[*client.Error](err)
	if !ok {
		return printable.Error(err)
	}
	if interrupted(e) {
		if e.Unknown {
			return "Interrupted: the request may have been applied"
		}
		return "Interrupted"
	}
	if words := aboutPath[e.Code]; words != "" {
		return words + e.Path
	}
	switch e.Code {
	case proto.ErrSessionClosedRequireSASLAuth:
		return keeperMessage(e) + "\nThe server demands an identity: authenticate with a client certificate (--cert and --key), --sasl-user, --jaas, " +
			"or the scheme that enforce.auth.schemes in its zoo.cfg names"
	case proto.ErrReconfigInProgress:
		return "Another reconfiguration is in progress -- concurrent reconfigs not supported (yet)"
	case proto.ErrNewConfigNoQuorum:
		return "No quorum of new config is connected and up-to-date with the leader of last commmitted config - " +
			"try invoking reconfiguration after new servers are connected and synced"
	}
	return keeperMessage(e)
}

// interrupted reports whether Ctrl-C or a signal ended the request. A timeout does not count.
func interrupted(e *client.Error) bool {
	return e.Code == proto.ErrOperationTimeout && e.Cause != nil && !errors.Is(e.Cause, context.DeadlineExceeded)
}

func keeperMessage(e *client.Error) string {
	m := "KeeperErrorCode = " + codeMessage(e.Code)
	if e.Path == "" || e.Path == javaNull {
		return m
	}
	return m + " for " + e.Path
}

// codeMessage is KeeperException.getCodeMessage.
func codeMessage(code proto.ErrCode) string {
	others := map[proto.ErrCode]string{ // than the names of constants
		proto.OK:                              "ok",
		proto.ErrUnknownSession:               "Unknown error -12",
		proto.ErrAPIError:                     "APIError",
		proto.ErrInvalidACL:                   "InvalidACL",
		proto.ErrNotEmpty:                     "Directory not empty",
		proto.ErrSessionExpired:               "Session expired",
		proto.ErrInvalidCallback:              "Invalid callback",
		proto.ErrSessionMoved:                 "Session moved",
		proto.ErrNotReadOnly:                  "Not a read-only call",
		proto.ErrEphemeralOnLocalSession:      "Ephemeral node on local session",
		proto.ErrNoWatcher:                    "No such watcher",
		proto.ErrRequestTimeout:               "Unknown error -122",
		proto.ErrReconfigDisabled:             "Reconfig is disabled",
		proto.ErrSessionClosedRequireSASLAuth: "Session closed because client failed to authenticate",
		proto.ErrQuotaExceeded:                "Quota has exceeded",
		proto.ErrThrottledOp:                  "Op throttled due to high load",
	}
	name, _, known := strings.Cut(code.String(), " (")
	if !known {
		return fmt.Sprintf("Unknown error %d", int32(code))
	}
	words := strings.Fields(name)
	for i, w := range words {
		words[i] = strings.ToUpper(w[:1]) + w[1:]
	}
	return cmp.Or(others[code], strings.Join(words, ""))
}

// javaCode returns the name of an error code in Java, such as NONODE. Source: KeeperException.Code.
func javaCode(code proto.ErrCode) string {
	if code == proto.ErrSessionClosedRequireSASLAuth {
		return "SESSIONCLOSEDREQUIRESASLAUTH"
	}
	words, _, _ := strings.Cut(code.String(), " (")
	return strings.ToUpper(strings.ReplaceAll(words, " ", ""))
}
