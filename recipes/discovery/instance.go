package discovery

import (
	"strconv"
	"strings"
	"time"
)

// ServiceType says what znode an instance has.
type ServiceType string

// The types.
const (
	Dynamic           ServiceType = "DYNAMIC"            // an ephemeral
	DynamicSequential ServiceType = "DYNAMIC_SEQUENTIAL" // an ephemeral with a number after its name
	Static            ServiceType = "STATIC"             // a persistent one
	Permanent         ServiceType = "PERMANENT"          // the same; what is different is up to who reads it
)

func (t ServiceType) dynamic() bool { return t == Dynamic || t == DynamicSequential || t == "" }

// Instance is one instance of a service. T is whatever else is to be known of it, in JSON.
type Instance[T any] struct {
	Name    string // of the service: the name of a znode
	ID      string // unique in the service: the name of a znode; Register makes one of none
	Address string // host or IP; "" is none
	Port    int    // 0 is none
	SSLPort int    // 0 is none
	Payload T
	// PayloadClass is the Java class of the payload. Curator writes it, and needs it to read a payload as something else than a map, a string, a
	// boolean or a number.
	PayloadClass string
	Registered   time.Time   // in milliseconds; Register takes the present time for none
	Type         ServiceType // "" is Dynamic
	URI          URISpec
	Disabled     bool // a Provider leaves it out
}

// URISpec says how an instance's URI is made: text, and in braces what is to be filled in, as in "{scheme}://{address}:{port}/{path}". "{[}" and
// "{]}" are braces.
type URISpec string

// BuildURI returns the instance's URI. vars are filled in for their names; of those it lacks the instance has
//
//	scheme (https if there is an SSLPort, else http), name, id, address, port, ssl-port, registration-time-utc (milliseconds), service-type
//
// and what neither has is left out, as by Curator. It fails if braces in the URISpec do not match.
func (in Instance[T]) BuildURI(vars map[string]string) (string, error) {
	parts, err := in.URI.parts()
	if err != nil {
		return "", err
	}
	own := map[string]string{
		"[": "{", "]": "}", "scheme": "http",
		"name": in.Name, "id": in.ID, "address": in.Address, "port": number(in.Port), "ssl-port": number(in.SSLPort),
		"registration-time-utc": strconv.FormatInt(millis(in.Registered), 10),
		"service-type":          strings.ToLower(string(in.Type.orDynamic())),
	}
	if in.SSLPort != 0 {
		own["scheme"] = "https"
	}
	var b strings.Builder
	for _, p := range parts {
		switch {
		case !p.Variable:
			b.WriteString(p.Value)
		case vars != nil && has(vars, p.Value):
			b.WriteString(vars[p.Value])
		default:
			b.WriteString(own[p.Value])
		}
	}
	return b.String(), nil
}

func has(m map[string]string, key string) bool {
	_, there := m[key]
	return there
}

func (t ServiceType) orDynamic() ServiceType {
	if t == "" {
		return Dynamic
	}
	return t
}

func number(port int) string {
	if port == 0 {
		return ""
	}
	return strconv.Itoa(port)
}

// millis returns milliseconds since 1970, and 0 for the zero time.
func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}
