package discovery

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/gozkd/gozkd/recipes"
)

// record is an Instance in the format of Curator's JsonInstanceSerializer, with the fields in the
// same order. As in Curator, "enabled", at which clients from before CURATOR-275 fail, is left out
// unless the instance is disabled.
type record struct {
	Name           string          `json:"name"`
	ID             string          `json:"id"`
	Address        *string         `json:"address"`
	Port           *int            `json:"port"`
	SSLPort        *int            `json:"sslPort"`
	Payload        json.RawMessage `json:"payload"`
	RegistrationMs int64           `json:"registrationTimeUTC"`
	ServiceType    ServiceType     `json:"serviceType"`
	URISpec        *uriParts       `json:"uriSpec"`
	Enabled        *bool           `json:"enabled,omitempty"`
}

func (in Instance[T]) record() (record, error) {
	r := record{
		Name: in.Name, ID: in.ID, Address: optional(in.Address), Port: optional(in.Port), SSLPort: optional(in.SSLPort),
		RegistrationMs: millis(in.Registered), ServiceType: in.Type.orDynamic(),
	}
	if in.Disabled {
		r.Enabled = new(bool)
	}
	parts, err := uriPartsOf(in.URI)
	if err != nil {
		return r, err
	}
	if parts != nil {
		r.URISpec = &uriParts{parts}
	}
	if r.Payload, err = marshal(in.Payload); err != nil {
		return r, err
	}
	r.Payload, err = withClass(r.Payload, in.PayloadClass)
	return r, err
}

// fromJSON reads an instance that Curator or encode wrote, and ignores unknown fields. The defaults
// of missing fields are Curator's: Dynamic, and enabled.
func fromJSON[T any](data []byte) (in Instance[T], err error) {
	var r record
	if err := json.Unmarshal(data, &r); err != nil {
		return in, err
	}
	in = Instance[T]{
		Name: r.Name, ID: r.ID, Address: value(r.Address), Port: value(r.Port), SSLPort: value(r.SSLPort),
		Registered: time.UnixMilli(r.RegistrationMs), Type: r.ServiceType.orDynamic(), Disabled: r.Enabled != nil && !*r.Enabled,
	}
	if r.RegistrationMs == 0 {
		in.Registered = time.Time{}
	}
	if r.URISpec != nil {
		in.URI = r.URISpec.spec()
	}
	if in.Payload, in.PayloadClass, err = payload[T](r.Payload); err != nil {
		return in, fmt.Errorf("payload: %w", err)
	}
	return in, nil
}

// classKey is the field in which Java's Jackson writes the class of an object.
const classKey = "@class"

// listClass is the class of a list without a PayloadClass.
const listClass = "java.util.ArrayList"

// JavaMap is the PayloadClass of an object that Java reads as a map, or that only Go reads.
const JavaMap = "java.util.LinkedHashMap"

// errNoPayloadClass means that a payload is an object and its Java class is not known. An instance
// with such a payload would make Curator's queries for the service fail.
var errNoPayloadClass = fmt.Errorf("%w: the payload is an object without PayloadClass: set it to the payload's class in Java, "+
	"or to discovery.JavaMap if Java programs read a Map or there are none", recipes.ErrArgument)

// encode returns the JSON of an instance to be registered, which Java must be able to read. An
// empty struct is null, which Java reads as any class.
func (in Instance[T]) encode() ([]byte, error) {
	r, err := in.record()
	if err != nil {
		return nil, err
	}
	switch _, empty := any(in.Payload).(struct{}); {
	case in.PayloadClass != "":
	case empty:
		r.Payload = nil
	case bytes.HasPrefix(r.Payload, []byte("{")):
		return nil, errNoPayloadClass
	}
	return marshal(r)
}

// withClass adds the class to a payload as Jackson's Id.CLASS does: to an object as its first
// field, to other values as an array of both. Values that need no class stay as they are: null, and
// without a class also strings, booleans, numbers, and objects, which Java reads as maps. A list
// always needs a class.
func withClass(raw json.RawMessage, class string) (json.RawMessage, error) {
	switch {
	case bytes.Equal(raw, []byte("null")):
		return raw, nil
	case class == "" && raw[0] == '[':
		class = listClass
	case class == "":
		return raw, nil
	}
	name, err := marshal(class)
	if err != nil {
		return nil, err
	}
	if raw[0] != '{' {
		return fmt.Appendf(nil, "[%s,%s]", name, raw), nil
	}
	if rest := raw[1:]; !bytes.Equal(rest, []byte("}")) {
		return fmt.Appendf(nil, `{"%s":%s,%s`, classKey, name, rest), nil
	}
	return fmt.Appendf(nil, `{"%s":%s}`, classKey, name), nil
}

// payload decodes a payload and its class. An array of a class name and a value counts as such a
// pair only if the value is a T. Otherwise the array itself is a T, written by a client that knows
// nothing of Java.
func payload[T any](raw json.RawMessage) (v T, class string, err error) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 {
		return v, "", nil
	}
	switch raw[0] {
	case '[':
		var pair []json.RawMessage
		if json.Unmarshal(raw, &pair) == nil && len(pair) == 2 && json.Unmarshal(pair[0], &class) == nil && strings.Contains(class, ".") &&
			json.Unmarshal(pair[1], &v) == nil {
			return v, class, nil
		}
		var again T // v may be half filled
		err = json.Unmarshal(raw, &again)
		return again, "", err
	case '{':
		var members map[string]json.RawMessage
		if err := json.Unmarshal(raw, &members); err != nil {
			return v, "", err
		}
		if name, there := members[classKey]; there && json.Unmarshal(name, &class) == nil {
			delete(members, classKey) // otherwise a map would have it as a key
			if raw, err = json.Marshal(members); err != nil {
				return v, "", err
			}
		}
	}
	err = json.Unmarshal(raw, &v)
	return v, class, err
}

// marshal is json.Marshal without escapes for HTML, which Jackson does not write.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

func optional[V comparable](v V) *V {
	var none V
	if v == none {
		return nil
	}
	return &v
}

func value[V any](p *V) (v V) {
	if p != nil {
		v = *p
	}
	return v
}
