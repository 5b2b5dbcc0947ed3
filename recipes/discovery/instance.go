package discovery

import (
	"cmp"
	"strconv"
	"strings"
	"time"
)

// ServiceType says how to create an instance's znode.
type ServiceType string

// The types.
const (
	Dynamic           ServiceType = "DYNAMIC"            // ephemeral
	DynamicSequential ServiceType = "DYNAMIC_SEQUENTIAL" // ephemeral, with a number after its name
	Static            ServiceType = "STATIC"             // persistent
	Permanent         ServiceType = "PERMANENT"          // persistent; the readers decide what differs from Static
)

// Instance is an instance of a service. T holds application data, which are written as JSON.
type Instance[T any] struct {
	Name    string // of the service; a valid name of a znode
	ID      string // unique in the service; a valid name of a znode; Register fills it in if empty
	Address string // host or IP; "" if none
	Port    int    // 0 if none
	SSLPort int    // 0 if none
	Payload T
	// PayloadClass is the Java class of the payload. Register requires it if the payload is an
	// object other than struct{}. Curator writes the class, and cannot read an object without it
	// unless its own payload class is a Map.
	PayloadClass string
	Registered   time.Time   // in milliseconds; Register fills in the present time if zero
	Type         ServiceType // "" means Dynamic
	// URI is the template of the instance's URI: text with variables in braces, such as
	// "{scheme}://{address}:{port}/{path}". "{[}" and "{]}" stand for braces.
	URI      string
	Disabled bool // not returned by a Provider
}

// BuildURI returns the instance's URI. vars has the values of variables. The instance supplies
// those that vars lacks:
//
//	scheme (https if there is an SSLPort, otherwise http), name, id, address, port, ssl-port,
//	registration-time-utc (milliseconds), service-type
//
// Variables that neither has are left out, as in Curator. BuildURI fails if the braces of the
// URI do not match.
func (in Instance[T]) BuildURI(vars map[string]string) (string, error) {
	parts, err := uriPartsOf(in.URI)
	if err != nil {
		return "", err
	}
	own := map[string]string{
		"[": "{", "]": "}", "scheme": "http",
		"name": in.Name, "id": in.ID, "address": in.Address, "port": formatPort(in.Port), "ssl-port": formatPort(in.SSLPort),
		"registration-time-utc": strconv.FormatInt(millis(in.Registered), 10),
		"service-type":          strings.ToLower(string(in.Type.orDynamic())),
	}
	if in.SSLPort != 0 {
		own["scheme"] = "https"
	}
	var b strings.Builder
	for _, p := range parts {
		text := p.Value
		if p.Variable {
			var ok bool
			if text, ok = vars[p.Value]; !ok {
				text = own[p.Value]
			}
		}
		b.WriteString(text)
	}
	return b.String(), nil
}

func (t ServiceType) orDynamic() ServiceType { return cmp.Or(t, Dynamic) }

func formatPort(port int) string {
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
