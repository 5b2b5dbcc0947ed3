package kerberos

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"

	"github.com/jcmturner/gokrb5/v8/credentials"
	"golang.org/x/crypto/cryptobyte"
)

// cacheKind is the kind of a ticket cache, such as DIR, KCM and KEYRING.
var cacheKind = regexp.MustCompile(`^[A-Z]{2,}:`)

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
	file, version, header, fields := cryptobyte.String(b), uint16(0), cryptobyte.String(nil), uint32(0)
	ok := file.ReadUint16(&version) && version == 0x504 && file.ReadUint16LengthPrefixed(&header)
	body := file
	ok = ok && skipPrincipal(&file)
	for ok && !file.Empty() {
		ok = skipPrincipal(&file) // the client
		// the server, the type of the key, the key, times, whether it is a session key, flags
		ok = ok && skipPrincipal(&file) && file.Skip(2) && skipData(&file) && file.Skip(4*4+1+4)
		for range 2 { // addresses, and data about authorization
			for ok = ok && file.ReadUint32(&fields); ok && fields > 0; fields-- {
				ok = file.Skip(2) && skipData(&file)
			}
		}
		ok = ok && skipData(&file) && skipData(&file) // the ticket, and a second one
	}
	if !ok {
		return nil, errCache
	}
	cache := new(credentials.CCache)
	if cache.Unmarshal(append([]byte{5, 4, 0, 0}, body...)) != nil {
		return nil, errCache
	}
	return cache, nil
}

// skipPrincipal skips the type of a name, the number of its components, the realm, and these.
func skipPrincipal(s *cryptobyte.String) bool {
	var n uint32
	ok := s.Skip(4) && s.ReadUint32(&n) && skipData(s)
	for ; ok && n > 0; n-- {
		ok = skipData(s)
	}
	return ok
}

// skipData skips a byte string with its length in front. gokrb5 takes large lengths as negative.
func skipData(s *cryptobyte.String) bool {
	var n uint32
	return s.ReadUint32(&n) && n <= 1<<30 && s.Skip(int(n))
}
