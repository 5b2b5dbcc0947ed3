package kerberos

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"

	"github.com/jcmturner/gokrb5/v8/credentials"
)

// cacheKind is the kind of a ticket cache, such as DIR, KCM and KEYRING.
var cacheKind = regexp.MustCompile(`^[A-Z]{2,}:`)

// loadCache reads a ticket cache.
func loadCache(name string) (*credentials.CCache, error) {
	if kind := cacheKind.FindString(name); kind != "" && kind != "FILE:" {
		return nil, fmt.Errorf("kerberos: the ticket cache %s is not a file; run kinit -c FILE:NAME, and name that file", name)
	}
	name = strings.TrimPrefix(name, "FILE:")
	file, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("kerberos: the ticket cache cannot be read; run kinit: %w", err)
	}
	cache, err := parseCache(file)
	if err != nil {
		return nil, fmt.Errorf("kerberos: %s: %w", name, err)
	}
	return cache, nil
}

var errCache = errors.New("not a ticket cache, or kinit is just writing it; run kinit")

// parseCache parses the format of MIT's ccache files, version 4. It checks the structure before
// gokrb5 parses the file, because gokrb5 panics if a file ends too early, and drops the header, in
// which gokrb5 does not know all fields.
func parseCache(b []byte) (*credentials.CCache, error) {
	if len(b) < 4 || b[0] != 5 || b[1] != 4 {
		return nil, errCache
	}
	r := reader{rest: b[2:]}
	r.take(int64(r.uint16()))
	body := r.rest
	r.cachePrincipal()
	for len(r.rest) > 0 && !r.failed {
		r.cachePrincipal() // the client
		r.cachePrincipal() // the server
		r.uint16()         // the type of the key
		r.data()
		r.take(4*4 + 1 + 4) // times, whether the key is a session key, flags
		for range 2 {       // addresses, and data about authorization
			for n := r.uint32(); n > 0 && !r.failed; n-- {
				r.uint16()
				r.data()
			}
		}
		r.data() // the ticket
		r.data()
	}
	if r.failed {
		return nil, errCache
	}
	cache := new(credentials.CCache)
	if cache.Unmarshal(append([]byte{5, 4, 0, 0}, body...)) != nil {
		return nil, errCache
	}
	return cache, nil
}

// cachePrincipal skips a name.
func (r *reader) cachePrincipal() {
	r.uint32() // the type of the name
	n := r.uint32()
	r.data()
	for ; n > 0 && !r.failed; n-- {
		r.data()
	}
}

// data reads a byte string with its length in front.
func (r *reader) data() []byte {
	n := r.uint32()
	if n > 1<<30 { // negative for gokrb5
		r.failed = true
		return nil
	}
	return r.take(int64(n))
}
