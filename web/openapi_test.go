package web_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/gozkd/gozkd/server"
	"github.com/gozkd/gozkd/web"
)

// openAPI is the part of the OpenAPI file that the tests use.
type openAPI struct {
	Paths      map[string]map[string]json.RawMessage
	Components struct{ Schemas map[string]schema }
}

type schema struct {
	Ref        string `json:"$ref"`
	Required   []string
	Properties map[string]schema
	Items      *schema
}

func openAPIFile(t *testing.T, s *site) openAPI {
	t.Helper()
	return decode[openAPI](t, s.want(200, `"openapi"`, "GET", "/openapi/v2.json", ""))
}

// The operations of the OpenAPI file, and their parameters, are those that the handler serves.
func TestOpenAPI_Operations(t *testing.T) {
	s := open(t, server.Config{}, web.Options{Anonymous: web.Write})
	file := openAPIFile(t, s)
	for _, method := range []string{"GET", "HEAD", "PUT", "POST", "DELETE", "PATCH", "OPTIONS", "QUERY"} {
		for _, prefix := range []string{"/znodes/v2/", "/identity/v2"} {
			var described json.RawMessage
			for path, operations := range file.Paths {
				if o := operations[strings.ToLower(method)]; o != nil && strings.HasPrefix(path, prefix) {
					described = o
				}
			}
			if prefix == "/identity/v2" && method == "HEAD" {
				continue // net/http serves it with every GET
			}
			r := s.ask(method, prefix+"?no-parameter", "")
			if served := r.StatusCode != 404 && r.StatusCode != 405; served != (described != nil) {
				t.Errorf("%s %s: status %d, in the file %v", method, prefix, r.StatusCode, described != nil)
			}
			if prefix == "/znodes/v2/" && described != nil && method != "HEAD" {
				var operation struct{ Parameters []struct{ Name, In string } }
				if err := json.Unmarshal(described, &operation); err != nil {
					t.Fatal(err)
				}
				var names []string
				for _, p := range operation.Parameters {
					if p.In == "query" {
						names = append(names, p.Name)
					}
				}
				if want := `unknown here: allowed are ` + strings.Join(names, ", ") + `"`; r.StatusCode != 400 || !strings.Contains(r.body, want) {
					t.Errorf("%s: %d %s, the file has %v", method, r.StatusCode, r.body, names)
				}
			}
		}
	}
	for path := range file.Paths {
		if !strings.HasPrefix(path, "/znodes/v2/") && path != "/identity/v2" {
			t.Errorf("%s is not a path of version 2", path)
		}
	}
}

// Answers have the properties that their schemas require, and no others.
func TestOpenAPI_Answers(t *testing.T) {
	s := open(t, server.Config{}, web.Options{Anonymous: web.Write})
	schemas := openAPIFile(t, s).Components.Schemas
	check := func(name, method, path, body string, headers ...string) {
		t.Helper()
		r := s.ask(method, path, body, headers...)
		conforms(t, schemas, schema{Ref: "#/components/schemas/" + name}, decode[any](t, r), method+" "+path)
	}
	check("Znode", "POST", "/znodes/v2/?name=a", "x")
	check("Znode", "POST", "/znodes/v2/a?name=t&ttl=60000", "")
	check("Znode", "POST", "/znodes/v2/a?name=c&mode=container", "")
	check("Znode", "PUT", "/znodes/v2/a", "y", `If-Match: "0"`)
	check("Data", "GET", "/znodes/v2/a", "")
	check("Children", "GET", "/znodes/v2/a?children", "")
	check("Children", "GET", "/znodes/v2/a?children&stat&limit=1", "")
	check("ACL", "GET", "/znodes/v2/a?acl", "")
	check("Results", "PATCH", "/znodes/v2/", `[{"op":"create","path":"/b"},{"op":"set","path":"/b","version":0},{"op":"check","path":"/b","version":1}]`)
	check("Identity", "GET", "/identity/v2", "")
	check("Identity", "GET", "/identity/v2", "", elsewhere)
	check("Problem", "GET", "/znodes/v2/none", "")
	check("Problem", "PUT", "/znodes/v2/a", "", `If-Match: "7"`)
	check("Problem", "PATCH", "/znodes/v2/", `[{"op":"check","path":"/b","version":7}]`)
}

func conforms(t *testing.T, all map[string]schema, is schema, value any, where string) {
	t.Helper()
	if name, ok := strings.CutPrefix(is.Ref, "#/components/schemas/"); ok {
		if is, ok = all[name]; !ok {
			t.Errorf("%s: no schema %s", where, name)
		}
	}
	switch v := value.(type) {
	case map[string]any:
		for _, name := range is.Required {
			if _, ok := v[name]; !ok {
				t.Errorf("%s has no %s", where, name)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if property, ok := is.Properties[name]; ok {
				conforms(t, all, property, v[name], where+" "+name)
			} else {
				t.Errorf("%s: %s is not in the schema", where, name)
			}
		}
	case []any:
		if is.Items == nil {
			t.Errorf("%s: an array is not in the schema", where)
			return
		}
		for _, item := range v {
			conforms(t, all, *is.Items, item, where)
		}
	}
}
