package call

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/internal/history"
	"github.com/gozkd/gozkd/internal/printable"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/web/internal/answer"
)

// Fail answers with the Problem of an error.
func Fail(w http.ResponseWriter, err error) { answer.Fail(w, ProblemOf(err)) }

// statuses has the HTTP statuses of ZooKeeper's codes; others are 502.
var statuses = map[proto.ErrCode]int{
	proto.ErrNoNode:                       http.StatusNotFound,
	proto.ErrNoAuth:                       http.StatusForbidden,
	proto.ErrQuotaExceeded:                http.StatusForbidden,
	proto.ErrAuthFailed:                   http.StatusUnauthorized,
	proto.ErrSessionClosedRequireSASLAuth: http.StatusUnauthorized,
	proto.ErrBadVersion:                   http.StatusPreconditionFailed,
	proto.ErrNodeExists:                   http.StatusConflict,
	proto.ErrNotEmpty:                     http.StatusConflict,
	proto.ErrNoChildrenForEphemerals:      http.StatusConflict,
	proto.ErrEphemeralOnLocalSession:      http.StatusConflict,
	proto.ErrBadArguments:                 http.StatusBadRequest,
	proto.ErrInvalidACL:                   http.StatusBadRequest,
	proto.ErrUnimplemented:                http.StatusNotImplemented,
	proto.ErrOperationTimeout:             http.StatusGatewayTimeout,
	proto.ErrRequestTimeout:               http.StatusGatewayTimeout,
	proto.ErrConnectionLoss:               http.StatusServiceUnavailable,
	proto.ErrSessionExpired:               http.StatusServiceUnavailable,
	proto.ErrNotReadOnly:                  http.StatusServiceUnavailable,
	proto.ErrThrottledOp:                  http.StatusServiceUnavailable,
	proto.ErrSessionMoved:                 http.StatusServiceUnavailable,
}

// ProblemOf returns the Problem of an error, not nil: of a request, of a body, or a Problem.
func ProblemOf(err error) *answer.Problem {
	var p *answer.Problem
	var e *client.Error
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &p):
		return p
	case errors.As(err, &e):
		p = ofCode(e.Code)
		if errors.Is(err, client.ErrTooLarge) {
			p.Status, p.Title = http.StatusRequestEntityTooLarge, http.StatusText(http.StatusRequestEntityTooLarge)
		}
		p.Path, p.Unknown = e.Path, e.Unknown
		if e.Cause != nil || e.Unknown {
			p.Detail = printable.Error(e)
		}
		return p
	case errors.As(err, &tooLarge):
		return answer.Errorf(http.StatusRequestEntityTooLarge, "the body is larger than %d bytes, which jute.maxbuffer allows", tooLarge.Limit)
	case errors.Is(err, history.ErrNotCovered):
		return answer.Errorf(http.StatusNotFound, "%s", printable.Error(err))
	case errors.Is(err, history.ErrBusy):
		p = answer.Errorf(http.StatusServiceUnavailable, "%s: try again in a few seconds", printable.Error(err))
		p.RetryAfter = 5
		return p
	case errors.Is(err, context.DeadlineExceeded):
		return answer.Errorf(http.StatusGatewayTimeout, "the server did not answer in time: %s", printable.Error(err))
	}
	if code, ok := errors.AsType[proto.ErrCode](err); ok {
		p = ofCode(code)
		p.Detail = printable.Error(err)
		return p
	}
	return answer.Errorf(http.StatusServiceUnavailable, "%s", printable.Error(err))
}

func ofCode(code proto.ErrCode) *answer.Problem {
	status, ok := statuses[code]
	if !ok {
		status = http.StatusBadGateway
	}
	p := answer.Errorf(status, "%v", code)
	p.Code = int32(code)
	return p
}

// Path returns the znode that a request is about.
func Path(r *http.Request, root string) (string, error) {
	rest, ok := strings.CutPrefix(r.URL.EscapedPath(), root)
	if !ok {
		return "", answer.Errorf(http.StatusNotFound, "%s is not below %s", r.URL.Path, root)
	}
	path, err := url.PathUnescape(rest)
	if err != nil {
		return "", answer.Errorf(http.StatusBadRequest, "the path cannot be decoded: %v", err)
	}
	path = "/" + path
	if err := proto.ValidatePath(path); err != nil {
		return "", answer.Errorf(http.StatusBadRequest, "%s", printable.Error(err))
	}
	return path, nil
}
