package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
)

// etcd speaks to the members' HTTP gateways: with one, and after an error with the next, as etcd's
// own client does.
type etcd struct {
	urls []string
	at   atomic.Int64
}

// call sends a request, and decodes the answer into reply unless it is nil.
func (e *etcd) call(ctx context.Context, path string, request map[string]any, reply any) error {
	err := e.callAt(ctx, e.urls[int(e.at.Load())%len(e.urls)], path, request, reply)
	if err != nil && !strings.Contains(err.Error(), "etcdserver: mvcc") {
		e.at.Add(1)
	}
	return err
}

func (e *etcd) callAt(ctx context.Context, url, path string, request map[string]any, reply any) error {
	body, err := json.Marshal(request)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return fmt.Errorf("etcd: %w", err)
	}
	text, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close() // all was read
	switch {
	case err != nil:
		return fmt.Errorf("etcd: %w", err)
	case answer.StatusCode != http.StatusOK:
		return fmt.Errorf("etcd: %s: %s", answer.Status, text)
	case reply != nil:
		return json.Unmarshal(text, reply)
	}
	return nil
}

func (e *etcd) create(ctx context.Context, key string, data []byte) error {
	return e.call(ctx, "/v3/kv/put", map[string]any{"key": []byte(key), "value": data}, nil)
}

func (e *etcd) get(ctx context.Context, key string) error {
	var found struct{ Kvs []any }
	err := e.call(ctx, "/v3/kv/range", map[string]any{"key": []byte(key)}, &found)
	if err == nil && len(found.Kvs) == 0 {
		return fmt.Errorf("etcd: no key %s", key)
	}
	return err
}

func (e *etcd) delete(ctx context.Context, key string) error {
	return e.call(ctx, "/v3/kv/deleterange", map[string]any{"key": []byte(key)}, nil)
}

// repair does what etcd's documentation says of the alarm NOSPACE.
func (e *etcd) repair(ctx context.Context) string {
	var now struct{ Header struct{ Revision string } }
	steps := []string{"compact"}
	err := e.call(ctx, "/v3/kv/range", map[string]any{"key": []byte("/watched")}, &now)
	if err == nil {
		err = e.call(ctx, "/v3/kv/compaction", map[string]any{"revision": now.Header.Revision, "physical": true}, nil)
	}
	for _, url := range e.urls {
		if err == nil {
			err = e.callAt(ctx, url, "/v3/maintenance/defragment", map[string]any{}, nil)
			steps = append(steps, "defragment a member")
		}
	}
	var raised struct{ Alarms []struct{ MemberID string } }
	if err == nil {
		err = e.call(ctx, "/v3/maintenance/alarm", map[string]any{"action": "GET"}, &raised)
	}
	for _, a := range raised.Alarms {
		if err == nil {
			request := map[string]any{"action": "DEACTIVATE", "alarm": "NOSPACE", "memberID": a.MemberID}
			err = e.call(ctx, "/v3/maintenance/alarm", request, nil)
			steps = append(steps, "disarm an alarm")
		}
	}
	if err != nil {
		return fmt.Sprintf("%s fails: %v", steps[len(steps)-1], err)
	}
	return strings.Join(slices.Compact(steps), ", ")
}
