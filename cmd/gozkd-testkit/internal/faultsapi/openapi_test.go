package faultsapi_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/gozkd/gozkd/cmd/gozkd-testkit/internal/faultsapi"
	"github.com/gozkd/gozkd/proto"
)

// openAPI is the part of testkit/openapi.json that the tests use.
type openAPI struct {
	Paths      map[string]map[string]operation
	Components struct{ Schemas map[string]*schema }
}

type operation struct {
	Summary     string
	Parameters  []struct{ Name, In string }
	RequestBody struct{ Content map[string]media }
	Responses   map[string]struct{ Content map[string]media }
}

type media struct {
	Schema  *schema
	Example json.RawMessage
}

type schema struct {
	Ref                  string `json:"$ref"`
	Type                 string
	Enum                 []string
	AnyOf                []*schema
	Required             []string
	Properties           map[string]*schema
	AdditionalProperties json.RawMessage // false or a schema; missing: true
	Items                *schema
}

func readOpenAPI(t *testing.T) (file openAPI) {
	t.Helper()
	b, err := os.ReadFile("../../../../testkit/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &file); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestOpenAPI: the file has the requests of the table, with their notes, parameters and examples,
// and no others. TestRows compares its schemas with real answers.
func TestOpenAPI(t *testing.T) {
	file, whole := readOpenAPI(t), readOpenAPI(t)
	for _, r := range faultsapi.Rows() {
		name, method := r.Method+" "+r.Path, strings.ToLower(r.Method)
		op, ok := file.Paths[r.Path][method]
		if !ok {
			t.Errorf("%s is not in the file", name)
			continue
		}
		delete(file.Paths[r.Path], method)
		if op.Summary != r.Note {
			t.Errorf("%s: the file says %q, GET / %q", name, op.Summary, r.Note)
		}
		var query string
		for _, p := range op.Parameters {
			if p.In == "query" {
				query += p.Name
			}
		}
		if wanted, _, _ := strings.Cut(strings.TrimPrefix(r.Query, "?"), "="); query != wanted {
			t.Errorf("%s: the parameter in the file is %q, want %q", name, query, wanted)
		}
		if r.Path == "/" || r.Path == "/dump" {
			continue
		}
		sameJSON(t, name+": the example of a body", op.RequestBody.Content["application/json"].Example, r.Body)
		sameJSON(t, name+": the example of an answer", op.Responses["200"].Content["application/json"].Example, r.Answer)
		if r.Body != "" {
			whole.conforms(t, r, "body", r.Body)
		}
	}
	ops := []string{"any", "connect"}
	for info := range proto.Ops() {
		if info.Group != "" && !slices.Contains(ops, info.Group) {
			ops = append(ops, info.Group)
		}
	}
	if got := whole.Components.Schemas["Fault"].Properties["op"].Enum; !slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(ops))) {
		t.Errorf("the ops in the file are %q, want %q", got, ops)
	}
	for path, operations := range file.Paths {
		for method := range operations {
			if method != "parameters" {
				t.Errorf("%s %s is in the file only", method, path)
			}
		}
	}
}

func sameJSON(t *testing.T, what string, got json.RawMessage, want string) {
	t.Helper()
	var a, b any
	if len(got) > 0 {
		if err := json.Unmarshal(got, &a); err != nil {
			t.Error(err)
		}
	}
	if want != "" {
		if err := json.Unmarshal([]byte(want), &b); err != nil {
			t.Error(err)
		}
	}
	if !reflect.DeepEqual(a, b) {
		t.Errorf("%s is %s, want %s", what, got, want)
	}
}

// conforms checks a body or an answer against its schema.
func (f *openAPI) conforms(t *testing.T, r faultsapi.Row, what, text string) {
	t.Helper()
	op := f.Paths[r.Path][strings.ToLower(r.Method)]
	is := op.RequestBody.Content["application/json"].Schema
	if what == "response" {
		is = op.Responses["200"].Content["application/json"].Schema
	}
	var value any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatal(err)
	}
	if is == nil {
		t.Errorf("%s %s: no schema of the %s", r.Method, r.Path, what)
	} else if err := f.check(is, value, what); err != nil {
		t.Errorf("%s %s: %v: %s", r.Method, r.Path, err, text)
	}
}

func (f *openAPI) check(is *schema, value any, where string) error {
	if name, ok := strings.CutPrefix(is.Ref, "#/components/schemas/"); ok {
		if is = f.Components.Schemas[name]; is == nil {
			return fmt.Errorf("%s: there is no schema %s", where, name)
		}
	}
	if len(is.AnyOf) > 0 {
		var err error
		for _, one := range is.AnyOf {
			if err = f.check(one, value, where); err == nil {
				return nil
			}
		}
		return err
	}
	var kind string
	switch v := value.(type) {
	case nil:
		kind = "null"
	case bool:
		kind = "boolean"
	case string:
		kind = "string"
		if len(is.Enum) > 0 && !slices.Contains(is.Enum, v) {
			return fmt.Errorf("%s is %q, not of %q", where, v, is.Enum)
		}
	case float64:
		kind = "integer"
	case []any:
		kind = "array"
		for _, item := range v {
			if err := f.check(is.Items, item, where+"[]"); err != nil {
				return err
			}
		}
	case map[string]any:
		kind = "object"
		if err := f.fields(is, v, where); err != nil {
			return err
		}
	}
	if kind != is.Type {
		return fmt.Errorf("%s is a %s, want a %s", where, kind, is.Type)
	}
	return nil
}

func (f *openAPI) fields(is *schema, v map[string]any, where string) error {
	for _, name := range is.Required {
		if _, ok := v[name]; !ok {
			return fmt.Errorf("%s has no %s", where, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(v)) {
		property := is.Properties[name]
		switch {
		case property != nil:
		case len(is.AdditionalProperties) == 0:
			continue
		case string(is.AdditionalProperties) == "false":
			return fmt.Errorf("%s: %s is not in the schema", where, name)
		default:
			property = new(schema)
			if err := json.Unmarshal(is.AdditionalProperties, property); err != nil {
				return err
			}
		}
		if err := f.check(property, v[name], where+"."+name); err != nil {
			return err
		}
	}
	return nil
}
