package discovery

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// record is an Instance as Curator's JsonInstanceSerializer writes it, in that order. That leaves out "enabled" unless it is told otherwise, since
// clients from before CURATOR-275 fail at it. Here it is written only where it is false: nobody else has to be told.
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

// MarshalJSON returns the instance as Curator writes it.
func (in Instance[T]) MarshalJSON() ([]byte, error) {
	r := record{
		Name: in.Name, ID: in.ID, Address: optional(in.Address), Port: optional(in.Port), SSLPort: optional(in.SSLPort),
		RegistrationMs: millis(in.Registered), ServiceType: in.Type.orDynamic(),
	}
	if in.Disabled {
		r.Enabled = new(bool)
	}
	parts, err := in.URI.parts()
	if err != nil {
		return nil, err
	}
	if parts != nil {
		r.URISpec = &uriParts{parts}
	}
	if r.Payload, err = marshal(in.Payload); err != nil {
		return nil, err
	}
	if r.Payload, err = withClass(r.Payload, in.PayloadClass); err != nil {
		return nil, err
	}
	return marshal(r)
}

// UnmarshalJSON reads what Curator writes, whatever else is in it. What is missing is as in Curator: Dynamic, and enabled.
func (in *Instance[T]) UnmarshalJSON(data []byte) error {
	var r record
	if err := json.Unmarshal(data, &r); err != nil {
		return err
	}
	out := Instance[T]{
		Name: r.Name, ID: r.ID, Address: value(r.Address), Port: value(r.Port), SSLPort: value(r.SSLPort),
		Registered: time.UnixMilli(r.RegistrationMs), Type: r.ServiceType.orDynamic(), Disabled: r.Enabled != nil && !*r.Enabled,
	}
	if r.RegistrationMs == 0 {
		out.Registered = time.Time{}
	}
	if r.URISpec != nil {
		out.URI = r.URISpec.spec()
	}
	var err error
	if out.Payload, out.PayloadClass, err = payload[T](r.Payload); err != nil {
		return fmt.Errorf("payload: %w", err)
	}
	*in = out
	return nil
}

// classKey is the member in which Java's Jackson says of what class an object is.
const classKey = "@class"

// listClass is that of a list of whose class nothing is said.
const listClass = "java.util.ArrayList"

// withClass adds the class to a payload as Jackson does with Id.CLASS: to an object as its first member, to all else as an array of both. What
// needs none is left as it is: null, and a string, boolean or number of no class; a map of no class is one for Java too. A list has
// to have one.
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

// payload reads a payload and its class. An array of a class's name and something is taken for that if the something is a T, and else for
// a T itself, as who knows nothing of Java writes one.
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
		var again T // the one above may be half filled
		err = json.Unmarshal(raw, &again)
		return again, "", err
	case '{':
		var members map[string]json.RawMessage
		if err := json.Unmarshal(raw, &members); err != nil {
			return v, "", err
		}
		if name, there := members[classKey]; there && json.Unmarshal(name, &class) == nil {
			delete(members, classKey) // a map would have it for a key
			if raw, err = json.Marshal(members); err != nil {
				return v, "", err
			}
		}
	}
	err = json.Unmarshal(raw, &v)
	return v, class, err
}

// marshal is json.Marshal without escapes for HTML, which Jackson does not make.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// optional returns nil for the zero value.
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
