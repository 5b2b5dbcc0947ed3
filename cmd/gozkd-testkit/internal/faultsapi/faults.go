package faultsapi

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/gozkd/gozkd/internal/faultproxy"
	"github.com/gozkd/gozkd/proto"
)

// fault is a fault that a request has armed.
type fault struct {
	id    int
	what  faultproxy.Fault
	armed *faultproxy.Armed
}

type faultAnswer struct {
	ID    int    `json:"id"`
	Fault string `json:"fault"`
	Count int    `json:"count"`
	Done  bool   `json:"done"`
}

func (f *fault) answer() faultAnswer {
	a := faultAnswer{ID: f.id, Fault: f.what.String(), Count: f.armed.Count()}
	select {
	case <-f.armed.Done():
		a.Done = true
	default:
	}
	return a
}

// kinds maps the names in requests to kinds of faults.
var kinds = map[string]faultproxy.Kind{"dropReply": faultproxy.DropReply, "delay": faultproxy.Delay, "fail": faultproxy.Fail}

func (a *api) arm(_ context.Context, q *request) (any, error) {
	var body struct {
		Kind    string    `json:"kind"`
		Op      string    `json:"op"`
		Path    string    `json:"path"`
		Session sessionID `json:"session"`
		Delay   duration  `json:"delay"`
		Code    errCode   `json:"code"`
		Times   int       `json:"times"`
	}
	if err := q.decode(&body); err != nil {
		return nil, err
	}
	kind, ok := kinds[body.Kind]
	if !ok {
		return nil, invalid("the kind is %q; allowed: dropReply, delay, fail", body.Kind)
	}
	what := faultproxy.Fault{
		Kind: kind, Op: faultproxy.Op(body.Op), PathPrefix: body.Path, Session: int64(body.Session),
		Delay: time.Duration(body.Delay), Code: proto.ErrCode(body.Code), Times: body.Times,
	}
	armed, err := a.cluster.Arm(what)
	if err != nil {
		return nil, invalid("%s", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	return map[string]int{"id": a.faults.put(func(id int) *fault { return &fault{id, what, armed} })}, nil
}

func (a *api) listFaults(context.Context, *request) (any, error) {
	list := []faultAnswer{}
	for _, f := range a.faults.all() {
		list = append(list, f.answer())
	}
	return list, nil
}

// awaitFault replies when the fault has happened or the time of ?wait is over.
func (a *api) awaitFault(ctx context.Context, q *request) (any, error) {
	f, err := named(q, "fault", a.faults.get)
	if err != nil {
		return nil, err
	}
	if wait := q.URL.Query().Get("wait"); wait != "" {
		d, err := parseDuration(wait)
		if err != nil {
			return nil, err
		}
		waiting, cancel := context.WithTimeout(ctx, d)
		defer cancel()
		select {
		case <-f.armed.Done():
		case <-f.armed.Gone():
			return byID(f.id, "fault", a.faults.get)
		case <-waiting.Done():
		}
	}
	return f.answer(), ctx.Err()
}

func (a *api) disarm(_ context.Context, q *request) (any, error) {
	f, err := named(q, "fault", a.faults.take)
	if err != nil {
		return nil, err
	}
	f.armed.Remove()
	return struct{}{}, nil
}

func (a *api) disarmAll(context.Context, *request) (any, error) {
	for _, f := range a.faults.all() {
		a.faults.take(f.id)
		f.armed.Remove()
	}
	return struct{}{}, nil
}

// errCode is an error code, given by number or name.
type errCode proto.ErrCode

// UnmarshalJSON reads a number or a name.
func (c *errCode) UnmarshalJSON(b []byte) error {
	if json.Unmarshal(b, (*int32)(c)) == nil {
		return nil
	}
	var name string
	if err := json.Unmarshal(b, &name); err == nil {
		for code := proto.ErrCode(-1); code > -128; code-- {
			words, _, known := strings.Cut(code.String(), " (")
			if known && strings.EqualFold(between.Replace(words), between.Replace(name)) {
				*c = errCode(code)
				return nil
			}
		}
	}
	return fmt.Errorf(`code %s is not known; expected is a negative number, or a name like "NoNode", "BadVersion", "SessionExpired"`, b)
}

// between removes what is between the words of an error's name, as in NO_NODE and "no node".
var between = strings.NewReplacer(" ", "", ",", "", "_", "")

// duration is a time.Duration in Go's notation.
type duration time.Duration

// UnmarshalJSON reads a string.
func (d *duration) UnmarshalJSON(b []byte) error {
	s, quoted := strings.CutPrefix(string(b), `"`)
	if !quoted {
		return fmt.Errorf(`%s is not a duration; expected is a string like "200ms", "5s", "1h30m"`, b)
	}
	parsed, err := parseDuration(strings.TrimSuffix(s, `"`))
	*d = duration(parsed)
	return err
}

func parseDuration(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err != nil {
		return 0, invalid("%q is not a duration; expected is one like 200ms, 5s, 1h30m", s)
	}
	return d, nil
}

// sessionID is a session id in any notation that clients use.
type sessionID int64

// UnmarshalJSON reads a number or a string.
func (id *sessionID) UnmarshalJSON(b []byte) error {
	parsed, err := parseSession(strings.Trim(string(b), `"`))
	*id = sessionID(parsed)
	return err
}

// parseSession reads a decimal number, which is negative for members from 128 on, or a hexadecimal
// number with 0x.
func parseSession(s string) (int64, error) {
	if digits, ok := strings.CutPrefix(s, "0x"); ok {
		if id, err := strconv.ParseUint(digits, 16, 64); err == nil {
			return int64(id), nil
		}
	} else if id, err := strconv.ParseInt(s, 10, 64); err == nil {
		return id, nil
	}
	return 0, invalid("%q is not a session id; expected is a decimal number, or a hexadecimal one with 0x", s)
}
