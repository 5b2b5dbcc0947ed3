package faultsapi

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/gozkd/gozkd/internal/cluster"
	"github.com/gozkd/gozkd/internal/strictjson"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server"
)

// ownPath is the top of the znodes that every server has.
const ownPath = "/zookeeper"

// data is a znode's data: a JSON string if it is UTF-8, {"base64":"..."} if not, or null.
type data []byte

// MarshalJSON writes the first form that fits.
func (d data) MarshalJSON() ([]byte, error) {
	switch {
	case d == nil:
		return []byte("null"), nil
	case utf8.Valid(d):
		return json.Marshal(string(d))
	}
	return json.Marshal(map[string][]byte{"base64": d})
}

// UnmarshalJSON reads any of the three forms.
func (d *data) UnmarshalJSON(b []byte) error {
	var s *string
	if json.Unmarshal(b, &s) == nil {
		if *d = nil; s != nil {
			*d = []byte(*s)
		}
		return nil
	}
	var binary struct {
		Base64 *[]byte `json:"base64"`
	}
	if err := strictjson.Decode(b, &binary); err != nil || binary.Base64 == nil {
		return fmt.Errorf(`data is a string, {"base64":"AAE="}, or null, not %.40s`, b)
	}
	*d = *binary.Base64
	return nil
}

func (a *api) readTree(ctx context.Context, q *request) (any, error) {
	path := cmp.Or(q.URL.Query().Get("path"), "/")
	if err := proto.ValidatePath(path); err != nil {
		return nil, invalid("path %q: %v", path, err)
	}
	tree := map[string]data{}
	err := a.cluster.Walk(ctx, path, func(z server.Znode) bool {
		if !isOwn(z.Path) || isOwn(path) {
			tree[z.Path] = bytes.Clone(z.Data)
		}
		return true
	})
	return tree, err
}

func isOwn(path string) bool { return path == ownPath || strings.HasPrefix(path, ownPath+"/") }

func (a *api) writeTree(ctx context.Context, q *request) (any, error) {
	var body map[string]data
	if err := q.decode(&body); err != nil {
		return nil, err
	}
	if len(body) == 0 {
		return nil, invalid("there are no znodes; expected is a body like %s", q.route.body)
	}
	znodes := make(map[string][]byte, len(body))
	for path, d := range body {
		if err := proto.ValidatePath(path); err != nil {
			return nil, invalid("path %q: %v", path, err)
		}
		znodes[path] = d
	}
	return struct{}{}, a.cluster.Load(ctx, znodes)
}

func (a *api) snapshot(ctx context.Context, _ *request) (any, error) {
	snapshot, err := a.cluster.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	return map[string]int{"id": a.snapshots.put(func(int) cluster.Snapshot { return snapshot })}, nil
}

func (a *api) rewind(ctx context.Context, q *request) (any, error) {
	var body struct {
		ID  int  `json:"id"`
		All bool `json:"all"`
	}
	if err := q.decode(&body); err != nil {
		return nil, err
	}
	snapshot, err := byID(body.ID, "snapshot", a.snapshots.get)
	if err == nil && body.All {
		err = a.renew(ctx)
	}
	if err != nil {
		return nil, err
	}
	return struct{}{}, a.cluster.Rewind(ctx, snapshot)
}

// renew ends faults, partitions and sessions, and lets all members run.
func (a *api) renew(ctx context.Context) error {
	_, _ = a.disarmAll(ctx, nil) // never fails
	if err := a.cluster.Repair(ctx); err != nil {
		return err
	}
	known, err := a.cluster.Sessions(ctx)
	for _, s := range known {
		expired := a.cluster.ExpireSession(ctx, s.ID)
		if !errors.Is(expired, cluster.ErrNotFound) { // otherwise its client has closed it
			err = errors.Join(err, expired)
		}
	}
	return err
}

func (a *api) forget(_ context.Context, q *request) (any, error) {
	_, err := named(q, "snapshot", a.snapshots.take)
	return struct{}{}, err
}

func (a *api) dump(context.Context, *request) (any, error) {
	var b bytes.Buffer
	a.cluster.Dump(&b)
	return text(b.Bytes()), nil
}
