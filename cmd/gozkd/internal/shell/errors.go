package shell

import (
	"context"
	"errors"
	"fmt"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/cli"
	"github.com/gozkd/gozkd/proto"
)

// usageError is a line that is wrong in itself. The shell prints it and the command's usage; a process that was to
// execute nothing else ends with program.Usage.
type usageError string

func (e usageError) Error() string { return string(e) }

// errUsage is a usageError with nothing to add to the usage.
const errUsage = usageError("")

// errNotConnected is printed on standard output, where ZooKeeper's shell has it.
var errNotConnected = errors.New("Not connected") //nolint:staticcheck // ZooKeeper's words

// failure is an error whose words are complete as they are.
type failure string

func (e failure) Error() string { return string(e) }

// unreachable says why there is no session, with each address.
type unreachable string

func (e unreachable) Error() string { return string(e) }

// errFailed says no more than that a command failed, which has already said why.
const errFailed = failure("")

// status is the exit status of a process whose last command ended with err.
func status(err error) int {
	switch {
	case err == nil:
		return cli.OK
	case errors.As(err, new(usageError)):
		return cli.Usage
	}
	return cli.Failed
}

// message is how ZooKeeper's shell words an error.
func message(err error) string {
	var e *client.Error
	if !errors.As(err, &e) {
		return err.Error()
	}
	if interrupted(e) {
		if e.Unknown {
			return "Interrupted: whether it was carried out is unknown"
		}
		return "Interrupted"
	}
	switch e.Code {
	case proto.ErrNoNode:
		return "Node does not exist: " + e.Path
	case proto.ErrNoChildrenForEphemerals:
		return "Ephemerals cannot have children: " + e.Path
	case proto.ErrNodeExists:
		return "Node already exists: " + e.Path
	case proto.ErrNotEmpty:
		return "Node not empty: " + e.Path
	case proto.ErrNotReadOnly:
		return "Not a read-only call: " + e.Path
	case proto.ErrInvalidACL:
		return "Acl is not valid : " + e.Path
	case proto.ErrNoAuth:
		return "Insufficient permission : " + e.Path
	case proto.ErrBadArguments:
		return "Arguments are not valid : " + e.Path
	case proto.ErrBadVersion:
		return "version No is not valid : " + e.Path
	case proto.ErrReconfigInProgress:
		return "Another reconfiguration is in progress -- concurrent reconfigs not supported (yet)"
	case proto.ErrNewConfigNoQuorum:
		return "No quorum of new config is connected and up-to-date with the leader of last commmitted config - " +
			"try invoking reconfiguration after new servers are connected and synced"
	case proto.ErrQuotaExceeded:
		return "Quota has exceeded : " + e.Path
	}
	return keeperMessage(e)
}

// interrupted reports whether a request was given up because somebody wanted it: by Ctrl-C at a prompt, by a signal else. A
// time limit is another thing.
func interrupted(e *client.Error) bool {
	return e.Code == proto.ErrOperationTimeout && e.Cause != nil && !errors.Is(e.Cause, context.DeadlineExceeded)
}

// keeperMessage is the message of ZooKeeper's KeeperException.
func keeperMessage(e *client.Error) string {
	m := "KeeperErrorCode = " + codeName(e.Code)
	if e.Path == "" {
		return m
	}
	return m + " for " + e.Path
}

// codeName returns the words of an error code in messages. Source: KeeperException.getCodeMessage.
func codeName(code proto.ErrCode) string {
	names := map[proto.ErrCode]string{
		proto.OK:                              "ok",
		proto.ErrSystemError:                  "SystemError",
		proto.ErrRuntimeInconsistency:         "RuntimeInconsistency",
		proto.ErrDataInconsistency:            "DataInconsistency",
		proto.ErrConnectionLoss:               "ConnectionLoss",
		proto.ErrMarshallingError:             "MarshallingError",
		proto.ErrNewConfigNoQuorum:            "NewConfigNoQuorum",
		proto.ErrReconfigInProgress:           "ReconfigInProgress",
		proto.ErrUnimplemented:                "Unimplemented",
		proto.ErrOperationTimeout:             "OperationTimeout",
		proto.ErrBadArguments:                 "BadArguments",
		proto.ErrAPIError:                     "APIError",
		proto.ErrNoNode:                       "NoNode",
		proto.ErrNoAuth:                       "NoAuth",
		proto.ErrBadVersion:                   "BadVersion",
		proto.ErrNoChildrenForEphemerals:      "NoChildrenForEphemerals",
		proto.ErrNodeExists:                   "NodeExists",
		proto.ErrInvalidACL:                   "InvalidACL",
		proto.ErrAuthFailed:                   "AuthFailed",
		proto.ErrNotEmpty:                     "Directory not empty",
		proto.ErrSessionExpired:               "Session expired",
		proto.ErrInvalidCallback:              "Invalid callback",
		proto.ErrSessionMoved:                 "Session moved",
		proto.ErrNotReadOnly:                  "Not a read-only call",
		proto.ErrEphemeralOnLocalSession:      "Ephemeral node on local session",
		proto.ErrNoWatcher:                    "No such watcher",
		proto.ErrReconfigDisabled:             "Reconfig is disabled",
		proto.ErrSessionClosedRequireSASLAuth: "Session closed because client failed to authenticate",
		proto.ErrQuotaExceeded:                "Quota has exceeded",
		proto.ErrThrottledOp:                  "Op throttled due to high load",
	}
	if n, ok := names[code]; ok {
		return n
	}
	return fmt.Sprintf("Unknown error %d", int32(code))
}

// printed is an error that the shell has already told of.
type printed struct{ error }

func (p printed) Unwrap() error { return p.error }
