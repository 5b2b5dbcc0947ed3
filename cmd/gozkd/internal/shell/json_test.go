package shell

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/proto"
)

func TestGetResult_JSON(t *testing.T) {
	for _, c := range []struct {
		data    []byte
		encoded bool
		want    string
	}{
		{[]byte(`a "b" <c> ü`), false, `{"path":"/x","data":"a \"b\" <c> ü"}`},
		{[]byte{}, false, `{"path":"/x","data":""}`},
		{nil, false, `{"path":"/x","data":null}`},
		{[]byte{0xff, 0}, false, `{"path":"/x","data_base64":"/wA="}`},
		{[]byte("a"), true, `{"path":"/x","data_base64":"YQ=="}`},
		{nil, true, `{"path":"/x","data":null}`},
	} {
		var b strings.Builder
		if err := writeJSON(&b, getResult{"/x", dataOf(c.data, c.encoded), nil}); err != nil {
			t.Fatal(err)
		}
		if b.String() != c.want+"\n" {
			t.Errorf("%q: %s, want %s", c.data, b.String(), c.want)
		}
	}
}

func TestErrorLine(t *testing.T) {
	s := newShell(nil, nil, settings{json: true})
	for _, c := range []struct {
		name string
		err  error
		want string
	}{
		{"get", &client.Error{Op: "getData", Path: "/x", Code: proto.ErrNoNode},
			`{"error":{"code":"NONODE","number":-101,"op":"getData","path":"/x","message":"Node does not exist: /x"}}`},
		{"set", &client.Error{Op: "setData", Path: "/x", Code: proto.ErrConnectionLoss, Unknown: true},
			`{"error":{"code":"CONNECTIONLOSS","number":-4,"op":"setData","path":"/x","message":"KeeperErrorCode = ConnectionLoss for /x","unknown":true}}`},
		{"ls", &client.Error{Op: "getChildren2", Path: "/x", Code: proto.ErrOperationTimeout, Cause: errInterrupted},
			`{"error":{"code":"INTERRUPTED","op":"getChildren2","path":"/x","message":"Interrupted"}}`},
		{"ls", &client.Error{Op: "getChildren2", Path: "/x", Code: proto.ErrOperationTimeout, Cause: context.Canceled},
			`{"error":{"code":"INTERRUPTED","op":"getChildren2","path":"/x","message":"Interrupted"}}`},
		{"sync", &client.Error{Op: "sync", Path: "/x", Code: proto.ErrOperationTimeout, Cause: context.DeadlineExceeded},
			`{"error":{"code":"OPERATIONTIMEOUT","number":-7,"op":"sync","path":"/x","message":"KeeperErrorCode = OperationTimeout for /x"}}`},
		{"stat", errUsage, `{"error":{"code":"USAGE","message":"wrong arguments","usage":"stat [-w] path"}}`},
		{"gte", s.unknownCommand("gte"), `{"error":{"code":"USAGE","message":"Command not found: gte; did you mean get? help lists all commands"}}`},
		{"ls", errNotConnected, `{"error":{"code":"NOTCONNECTED","message":"Not connected"}}`},
		{"", unreachable{"no"}, `{"error":{"code":"NOTCONNECTED","message":"no"}}`},
		{"ls", errors.New("odd"), `{"error":{"code":"FAILED","message":"odd"}}`},
	} {
		var b strings.Builder
		if err := writeJSON(&b, s.errorLine(c.name, c.err)); err != nil {
			t.Fatal(err)
		}
		if b.String() != c.want+"\n" {
			t.Errorf("%s: %v is\n%swant\n%s", c.name, c.err, b.String(), c.want)
		}
	}
}

// The expected names are those of KeeperException.Code.
func TestJavaCode(t *testing.T) {
	for code, want := range map[proto.ErrCode]string{
		proto.ErrSystemError: "SYSTEMERROR", proto.ErrRuntimeInconsistency: "RUNTIMEINCONSISTENCY",
		proto.ErrDataInconsistency: "DATAINCONSISTENCY", proto.ErrConnectionLoss: "CONNECTIONLOSS",
		proto.ErrMarshallingError: "MARSHALLINGERROR", proto.ErrUnimplemented: "UNIMPLEMENTED",
		proto.ErrOperationTimeout: "OPERATIONTIMEOUT", proto.ErrBadArguments: "BADARGUMENTS",
		proto.ErrNewConfigNoQuorum: "NEWCONFIGNOQUORUM", proto.ErrReconfigInProgress: "RECONFIGINPROGRESS",
		proto.ErrUnknownSession: "UNKNOWNSESSION", proto.ErrAPIError: "APIERROR", proto.ErrNoNode: "NONODE",
		proto.ErrNoAuth: "NOAUTH", proto.ErrBadVersion: "BADVERSION", proto.ErrNoChildrenForEphemerals: "NOCHILDRENFOREPHEMERALS",
		proto.ErrNodeExists: "NODEEXISTS", proto.ErrNotEmpty: "NOTEMPTY", proto.ErrSessionExpired: "SESSIONEXPIRED",
		proto.ErrInvalidCallback: "INVALIDCALLBACK", proto.ErrInvalidACL: "INVALIDACL", proto.ErrAuthFailed: "AUTHFAILED",
		proto.ErrSessionMoved: "SESSIONMOVED", proto.ErrNotReadOnly: "NOTREADONLY",
		proto.ErrEphemeralOnLocalSession: "EPHEMERALONLOCALSESSION", proto.ErrNoWatcher: "NOWATCHER",
		proto.ErrRequestTimeout: "REQUESTTIMEOUT", proto.ErrReconfigDisabled: "RECONFIGDISABLED",
		proto.ErrSessionClosedRequireSASLAuth: "SESSIONCLOSEDREQUIRESASLAUTH", proto.ErrQuotaExceeded: "QUOTAEXCEEDED",
		proto.ErrThrottledOp: "THROTTLEDOP",
	} {
		if got := javaCode(code); got != want {
			t.Errorf("%v: %s, want %s", code, got, want)
		}
	}
}
