package discovery_test

import (
	"errors"
	"maps"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/discovery"
)

// details is a payload.
type details struct {
	Val  string `json:"val"`
	Tags []int  `json:"tags,omitempty"`
}

// checkJSON compares an instance's JSON with Curator's, byte by byte, and reads it again.
func checkJSON[T any](t *testing.T, name string, in discovery.Instance[T], want string) {
	t.Helper()
	got, err := in.ToJSON()
	if err != nil || string(got) != want {
		t.Errorf("%s:\n%s, %v, want\n%s", name, got, err, want)
	}
	out, err := discovery.FromJSON[T](got)
	if err != nil {
		t.Errorf("%s: %v", name, err)
	}
	if out.Type == discovery.Dynamic && in.Type == "" {
		in.Type = out.Type
	}
	if !out.Registered.Equal(in.Registered) {
		t.Errorf("%s: %v", name, out.Registered)
	}
	out.Registered = in.Registered
	if in.PayloadClass == "" {
		out.PayloadClass = "" // set for lists only
	}
	if !reflect.DeepEqual(in, out) {
		t.Errorf("%s: %+v, want %+v", name, out, in)
	}
}

// The texts are the output of JsonInstanceSerializer of curator-x-discovery 5.9.0 with Jackson
// 2.18.1; "enabled" in its mode that is incompatible with older releases.
func TestD4_Writes(t *testing.T) {
	at := time.UnixMilli(1610116500446)
	checkJSON(t, "the least", discovery.Instance[any]{Name: "n", ID: "i"},
		`{"name":"n","id":"i","address":null,"port":null,"sslPort":null,"payload":null,"registrationTimeUTC":0,"serviceType":"DYNAMIC","uriSpec":null}`)
	checkJSON(t, "all", discovery.Instance[details]{
		Name: "name", ID: "id", Address: "address", Port: 10, SSLPort: 20, Payload: details{Val: "<&>"}, PayloadClass: "org.example.Payload",
		Registered: at, Type: discovery.Permanent, URI: "{a}/b/{c}", Disabled: true,
	}, `{"name":"name","id":"id","address":"address","port":10,"sslPort":20,"payload":{"@class":"org.example.Payload","val":"<&>"},`+
		`"registrationTimeUTC":1610116500446,"serviceType":"PERMANENT",`+
		`"uriSpec":{"parts":[{"value":"a","variable":true},{"value":"/b/","variable":false},{"value":"c","variable":true}]},"enabled":false}`)

	const head, tail = `{"name":"n","id":"i","address":null,"port":null,"sslPort":null,"payload":`, `,"registrationTimeUTC":0,"serviceType":"DYNAMIC","uriSpec":null}`
	checkJSON(t, "string", discovery.Instance[string]{Name: "n", ID: "i", Payload: "hey"}, head+`"hey"`+tail)
	checkJSON(t, "int", discovery.Instance[int]{Name: "n", ID: "i", Payload: 5}, head+`5`+tail)
	checkJSON(t, "long", discovery.Instance[int]{Name: "n", ID: "i", Payload: 5, PayloadClass: "java.lang.Long"}, head+`["java.lang.Long",5]`+tail)
	checkJSON(t, "list", discovery.Instance[[]string]{Name: "n", ID: "i", Payload: []string{"a", "b"}}, head+`["java.util.ArrayList",["a","b"]]`+tail)
	checkJSON(t, "map", discovery.Instance[map[string]string]{Name: "n", ID: "i", Payload: map[string]string{"1": "a"}, PayloadClass: "java.util.HashMap"},
		head+`{"@class":"java.util.HashMap","1":"a"}`+tail)
	checkJSON(t, "empty map", discovery.Instance[map[string]string]{Name: "n", ID: "i", Payload: map[string]string{}, PayloadClass: "java.util.HashMap"},
		head+`{"@class":"java.util.HashMap"}`+tail)
	checkJSON(t, "map of no class", discovery.Instance[map[string]string]{Name: "n", ID: "i", Payload: map[string]string{"1": "a"}}, head+`{"1":"a"}`+tail)
}

// JSON of others, with unknown fields and with missing fields.
func TestD4_Reads(t *testing.T) {
	// As Spring Cloud Zookeeper writes it.
	in, err := discovery.FromJSON[map[string]any]([]byte(`{"name": "pay", "id": "6d4e", "address": "h", "port": 8005, "sslPort": null,
		"payload": {"@class": "org.springframework.cloud.zookeeper.discovery.ZookeeperInstance", "id": "application-1", "name": "pay", "metadata": {}},
		"registrationTimeUTC": 1610116500446, "serviceType": "DYNAMIC", "new": {"a": [1]}, "enabled": true,
		"uriSpec": {"parts": [{"value": "scheme", "variable": true}, {"value": "://", "variable": false}, {"value": "address", "variable": true},
			{"value": ":", "variable": false}, {"value": "port", "variable": true}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	if in.Name != "pay" || in.Port != 8005 || in.SSLPort != 0 || in.Disabled || in.URI != "{scheme}://{address}:{port}" ||
		in.PayloadClass != "org.springframework.cloud.zookeeper.discovery.ZookeeperInstance" ||
		!maps.EqualFunc(in.Payload, map[string]any{"id": "application-1", "name": "pay", "metadata": map[string]any{}}, func(a, b any) bool { return reflect.DeepEqual(a, b) }) {
		t.Errorf("%+v", in)
	}
	if uri, err := in.BuildURI(nil); err != nil || uri != "http://h:8005" {
		t.Errorf("%q, %v", uri, err)
	}
	if in, err := discovery.FromJSON[map[string]any]([]byte(`{}`)); err != nil || in.Type != discovery.Dynamic || in.Disabled || in.Payload != nil || !in.Registered.IsZero() {
		t.Errorf("%+v, %v", in, err)
	}
	for _, payload := range []string{`["java.util.ArrayList",["a.b","c"]]`, `["a.b","c"]`} { // Jackson's, and one without a class
		if list, err := discovery.FromJSON[[]string]([]byte(`{"payload":` + payload + `}`)); err != nil || len(list.Payload) != 2 || list.Payload[0] != "a.b" {
			t.Errorf("%s: %+v, %v", payload, list, err)
		}
	}
	for _, bad := range []string{``, `[]`, `{"port":"x"}`, `{"payload":5}`, `{"payload":{"a":1}}`, `{`} {
		if list, err := discovery.FromJSON[[]string]([]byte(bad)); err == nil {
			t.Errorf("%s: %+v", bad, list)
		}
	}
}

func TestBuildURI(t *testing.T) {
	in := discovery.Instance[string]{Name: "n", ID: "i", Address: "h", Port: 1, Registered: time.UnixMilli(5), Type: discovery.Static}
	for spec, want := range map[string]string{
		"":                                "",
		"plain":                           "plain",
		"{scheme}://{address}:{port}/{x}": "http://h:1/X",
		"{ name }/{id}/{none}":            "n/i/",
		"{ssl-port}{}{[}{registration-time-utc}{]}{service-type}": "{5}static",
	} {
		in.URI = spec
		if got, err := in.BuildURI(map[string]string{"x": "X"}); err != nil || got != want {
			t.Errorf("%s: %q, %v; want %q", spec, got, err, want)
		}
	}
	in.SSLPort, in.URI = 2, "{scheme}:{ssl-port}:{port}"
	if got, err := in.BuildURI(map[string]string{"port": "7"}); err != nil || got != "https:2:7" {
		t.Errorf("%q, %v", got, err)
	}
	for _, bad := range []string{"{", "}", "a{b", "{a{b}}", "{a}}"} {
		in.URI = bad
		if _, err := in.BuildURI(nil); !errors.Is(err, recipes.ErrArgument) {
			t.Errorf("%s: %v", bad, err)
		}
		if _, err := in.ToJSON(); !errors.Is(err, recipes.ErrArgument) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// Every instance survives writing and reading.
func TestD4_RoundTrip(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		in := discovery.Instance[map[string]string]{
			Name: rapid.String().Draw(rt, "name"), ID: rapid.String().Draw(rt, "id"), Address: rapid.String().Draw(rt, "address"),
			Port: rapid.IntRange(0, 65535).Draw(rt, "port"), SSLPort: rapid.IntRange(0, 65535).Draw(rt, "ssl port"),
			Payload:      rapid.MapOf(rapid.StringMatching(`[^@]*`), rapid.String()).Draw(rt, "payload"),
			PayloadClass: rapid.SampledFrom([]string{"", "java.util.HashMap"}).Draw(rt, "class"),
			Registered:   time.UnixMilli(rapid.Int64Range(1, 1<<42).Draw(rt, "registered")),
			Type:         rapid.SampledFrom([]discovery.ServiceType{discovery.Dynamic, discovery.Static, discovery.Permanent, discovery.DynamicSequential}).Draw(rt, "type"),
			URI:          string(rapid.StringMatching(`([a-z:/]*\{[a-z]+\}){0,3}`).Draw(rt, "uri")),
			Disabled:     rapid.Bool().Draw(rt, "disabled"),
		}
		data, err := in.ToJSON()
		if err != nil {
			rt.Fatal(err)
		}
		out, err := discovery.FromJSON[map[string]string](data)
		if err != nil {
			rt.Fatalf("%s: %v", data, err)
		}
		if !reflect.DeepEqual(in, out) {
			rt.Errorf("%s:\n%+v, want\n%+v", data, out, in)
		}
	})
}

// TestRegister_NoClass checks that no instance is registered at which Curator's queries fail.
func TestRegister_NoClass(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		c := w.Client()
		in := discovery.Instance[details]{Name: "shop", ID: "1", Payload: details{Val: "x"}}
		if _, err := discovery.New[details](c, "/services").Register(t.Context(), in); !errors.Is(err, recipes.ErrArgument) {
			t.Error(err)
		}
		in.PayloadClass = discovery.JavaMap
		r, err := discovery.New[details](c, "/services").Register(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		in.PayloadClass = ""
		if err := r.Update(t.Context(), in); !errors.Is(err, recipes.ErrArgument) {
			t.Error(err)
		}
		if _, err := discovery.New[struct{}](c, "/services").Register(t.Context(), discovery.Instance[struct{}]{Name: "shop", ID: "2"}); err != nil {
			t.Error(err)
		}
		if data := string(w.Znode("/services/shop/2").Data); !strings.Contains(data, `"payload":null`) {
			t.Error(data)
		}
	})
}
