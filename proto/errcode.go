package proto

import "strconv"

// ErrCode is the err field of a reply, 0 or a negative number. Clients use it as an error, too.
type ErrCode int32

// The error codes. Java clients throw on numbers that are not listed here, so a server must not
// invent any. Source: ZooKeeper's KeeperException.Code.
const (
	OK                              ErrCode = 0
	ErrSystemError                  ErrCode = -1
	ErrRuntimeInconsistency         ErrCode = -2
	ErrDataInconsistency            ErrCode = -3
	ErrConnectionLoss               ErrCode = -4
	ErrMarshallingError             ErrCode = -5
	ErrUnimplemented                ErrCode = -6
	ErrOperationTimeout             ErrCode = -7
	ErrBadArguments                 ErrCode = -8
	ErrUnknownSession               ErrCode = -12
	ErrNewConfigNoQuorum            ErrCode = -13
	ErrReconfigInProgress           ErrCode = -14
	ErrAPIError                     ErrCode = -100
	ErrNoNode                       ErrCode = -101
	ErrNoAuth                       ErrCode = -102
	ErrBadVersion                   ErrCode = -103
	ErrNoChildrenForEphemerals      ErrCode = -108
	ErrNodeExists                   ErrCode = -110
	ErrNotEmpty                     ErrCode = -111
	ErrSessionExpired               ErrCode = -112
	ErrInvalidCallback              ErrCode = -113
	ErrInvalidACL                   ErrCode = -114
	ErrAuthFailed                   ErrCode = -115
	ErrSessionMoved                 ErrCode = -118
	ErrNotReadOnly                  ErrCode = -119
	ErrEphemeralOnLocalSession      ErrCode = -120
	ErrNoWatcher                    ErrCode = -121
	ErrRequestTimeout               ErrCode = -122
	ErrReconfigDisabled             ErrCode = -123
	ErrSessionClosedRequireSASLAuth ErrCode = -124
	ErrQuotaExceeded                ErrCode = -125
	ErrThrottledOp                  ErrCode = -127
)

var errNames = map[ErrCode]string{
	OK: "ok", ErrSystemError: "system error", ErrRuntimeInconsistency: "runtime inconsistency",
	ErrDataInconsistency: "data inconsistency", ErrConnectionLoss: "connection loss",
	ErrMarshallingError: "marshalling error", ErrUnimplemented: "unimplemented", ErrOperationTimeout: "operation timeout",
	ErrBadArguments: "bad arguments", ErrUnknownSession: "unknown session", ErrNewConfigNoQuorum: "new config no quorum",
	ErrReconfigInProgress: "reconfig in progress", ErrAPIError: "api error", ErrNoNode: "no node", ErrNoAuth: "no auth",
	ErrBadVersion: "bad version", ErrNoChildrenForEphemerals: "no children for ephemerals", ErrNodeExists: "node exists",
	ErrNotEmpty: "not empty", ErrSessionExpired: "session expired", ErrInvalidCallback: "invalid callback",
	ErrInvalidACL: "invalid acl", ErrAuthFailed: "auth failed", ErrSessionMoved: "session moved",
	ErrNotReadOnly: "not read only", ErrEphemeralOnLocalSession: "ephemeral on local session", ErrNoWatcher: "no watcher",
	ErrRequestTimeout: "request timeout", ErrReconfigDisabled: "reconfig disabled",
	ErrSessionClosedRequireSASLAuth: "session closed, sasl auth required", ErrQuotaExceeded: "quota exceeded",
	ErrThrottledOp: "throttled op",
}

// String returns the code in words with its number, for example "no node (-101)".
func (e ErrCode) String() string {
	if s, ok := errNames[e]; ok {
		return s + " (" + strconv.Itoa(int(e)) + ")"
	}
	return "error code " + strconv.Itoa(int(e))
}

// Error makes an ErrCode an error for clients.
func (e ErrCode) Error() string { return "zookeeper: " + e.String() }

// goZookeeper has the texts of the errors of go-zookeeper, which this package does not import, and
// the code that package client returns in the same situation.
var goZookeeper = map[string]ErrCode{
	"zk: connection closed": ErrConnectionLoss, "zk: api error": ErrAPIError, "zk: node does not exist": ErrNoNode,
	"zk: not authenticated": ErrNoAuth, "zk: version conflict": ErrBadVersion,
	"zk: ephemeral nodes may not have children": ErrNoChildrenForEphemerals, "zk: node already exists": ErrNodeExists,
	"zk: node has children": ErrNotEmpty, "zk: session has been expired by the server": ErrSessionExpired,
	"zk: invalid ACL specified": ErrInvalidACL, "zk: client authentication failed": ErrAuthFailed,
	"zk: session moved to another server, so operation is ignored":                             ErrSessionMoved,
	"attempts to perform a reconfiguration operation when reconfiguration feature is disabled": ErrReconfigDisabled,
	"invalid arguments": ErrBadArguments, "zk: invalid path": ErrBadArguments,
}

// Is reports whether target is the error of package github.com/go-zookeeper/zk for the code: with
// it errors.Is finds zk.ErrNoNode, for example, in an error that wraps ErrNoNode.
func (e ErrCode) Is(target error) bool {
	if _, other := target.(ErrCode); other {
		return false
	}
	code, known := goZookeeper[target.Error()]
	return known && code == e
}
