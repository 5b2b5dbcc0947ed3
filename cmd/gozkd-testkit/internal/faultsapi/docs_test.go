package faultsapi_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/gozkd/gozkd/cmd/gozkd-testkit/internal/faultsapi"
	"github.com/gozkd/gozkd/internal/cluster"
)

// TestRows: every row of the list of GET / is served with its example of a body, and the reply has
// the fields of its example.
func TestRows(t *testing.T) {
	w := start(t, 3)
	c := w.connect(1)
	// of replaces {id} in a path by the id of something that exists.
	of := func(path string) string {
		var answer struct{ ID int }
		switch kind, _, _ := strings.Cut(path[1:], "/"); kind {
		case "members":
			answer.ID = 2
		case "sessions":
			return strings.Replace(path, "{id}", fmt.Sprintf("0x%x", c.SessionID()), 1)
		case "faults":
			w.must("POST", "/faults", `{"kind":"fail","op":"setACL","code":-101}`, &answer)
		case "servers":
			w.must("POST", "/servers", "", &answer)
		case "snapshot":
			w.must("POST", "/snapshot", "", &answer)
		}
		return strings.Replace(path, "{id}", fmt.Sprint(answer.ID), 1)
	}
	file := readOpenAPI(t)
	for i, r := range faultsapi.Rows() {
		for _, m := range w.cluster.Members() { // undo the effect of the previous row
			if m.State() == cluster.Down {
				w.must("POST", fmt.Sprintf("/members/%d/start", m.ID()), "", nil)
			}
			if m.State() == cluster.Paused {
				w.must("POST", fmt.Sprintf("/members/%d/resume", m.ID()), "", nil)
			}
		}
		w.must("POST", "/heal", "", nil)
		w.must("PUT", "/tree", `{"/a":"text","/a/b":{"base64":"AAH/"},"/a/c":null}`, nil)
		switch r.Path {
		case "/members/{id}/start":
			w.must("POST", "/members/2/kill", "", nil)
		case "/members/{id}/resume":
			w.must("POST", "/members/2/pause", "", nil)
		case "/sessions", "/sessions/{id}/disconnect":
			w.eventually("connected", func() bool { _, err := w.cluster.MemberOf(c.SessionID()); return err == nil })
		case "/rewind":
			w.must("POST", "/snapshot", "", nil)
		}
		path := of(r.Path)
		if r.Path == "/certificate" {
			var secure struct{ ID int }
			w.must("POST", "/servers", `{"tls":true}`, &secure)
			path = fmt.Sprintf("/servers/%d%s", secure.ID, path)
		}
		query := strings.Replace(r.Query, "5s", "1ms", 1)
		status, text := w.ask(r.Method, path+query, r.Body)
		if status != 200 {
			t.Errorf("row %d, %s %s %s: %d %s", i, r.Method, path, r.Body, status, text)
			continue
		}
		if r.Path == "/" || r.Path == "/dump" {
			continue
		}
		example := r.Answer
		if example == "" {
			example = "{}"
		}
		if r.Path == "/tree" && r.Method == "GET" {
			example = strings.Replace(example, `"/":"",`, "", 1) // the documented reply is that for ?path=/
		}
		file.conforms(t, r, "response", text)
		if got, want := shape(t, text), shape(t, example); !reflect.DeepEqual(got, want) {
			t.Errorf("row %d, %s %s: the answer is %s, and the documentation says %s", i, r.Method, path, text, example)
		}
		if r.Path == "/sessions/{id}/expire" || r.Path == "/rewind" {
			c = w.connect(1)
		}
	}
	status, text := w.ask("GET", "/", "")
	for _, r := range faultsapi.Rows() {
		if !strings.Contains(text, "\n"+r.Method+" "+r.Path) || !strings.Contains(text, r.Note) {
			t.Errorf("%d: the list does not have %s %s", status, r.Method, r.Path)
		}
	}
}

// shape reduces a JSON value to names of fields and types. The first element represents a list.
func shape(t *testing.T, text string) any {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	var of func(v any) any
	of = func(v any) any {
		switch v := v.(type) {
		case map[string]any:
			fields := map[string]any{}
			for name, value := range v {
				fields[name] = of(value)
			}
			return fields
		case []any:
			if len(v) == 0 {
				return []any{}
			}
			return []any{of(v[0])}
		}
		return fmt.Sprintf("%T", v)
	}
	return of(v)
}
