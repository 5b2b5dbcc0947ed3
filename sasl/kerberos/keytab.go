package kerberos

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jcmturner/gokrb5/v8/types"
	"golang.org/x/crypto/cryptobyte"
)

// keytab holds the keys of a keytab file. gokrb5's reader is not used for the server: its errors
// contain the file.
type keytab []keytabEntry

type keytabEntry struct {
	components []string
	realm      string
	version    uint32
	short      bool // only the last 8 bits of version are known
	key        types.EncryptionKey
}

// errKeytab is the only error about the content of a keytab, which is secret.
var errKeytab = errors.New("not a keytab, or damaged; export it again (kadmin: ktadd)")

// parseKeytab parses the format of MIT's file_keytab, version 2.
func parseKeytab(b []byte) (kt keytab, err error) {
	file, version, size, ok := cryptobyte.String(b), uint16(0), uint32(0), true
	if !file.ReadUint16(&version) || version != 0x502 {
		return nil, errKeytab
	}
	for ok && !file.Empty() {
		ok = file.ReadUint32(&size)
		switch n := int(int32(size)); {
		case !ok:
		case n < 0: // a deleted entry
			ok = file.Skip(-n)
		case n > 0:
			var e keytabEntry
			var entry []byte
			ok = file.ReadBytes(&entry, n) && e.parse(entry)
			kt = append(kt, e)
		default: // the end of a file that was allocated larger
			return kt, nil
		}
	}
	if !ok {
		return nil, errKeytab
	}
	return kt, nil
}

// parse parses an entry. It ignores the flags that may follow the version.
func (e *keytabEntry) parse(s cryptobyte.String) bool {
	var count, keyType uint16
	var version uint8
	var text cryptobyte.String
	ok := s.ReadUint16(&count) && s.ReadUint16LengthPrefixed(&text)
	e.realm = string(text)
	for ; ok && count > 0; count-- {
		ok = s.ReadUint16LengthPrefixed(&text)
		e.components = append(e.components, string(text))
	}
	ok = ok && s.Skip(4+4) && // the type of the name, and the time
		s.ReadUint8(&version) && s.ReadUint16(&keyType) && s.ReadUint16LengthPrefixed(&text)
	e.key = types.EncryptionKey{KeyType: int32(keyType), KeyValue: slices.Clone(text)}
	if !s.ReadUint32(&e.version) || e.version == 0 {
		e.version, e.short = uint32(version), true
	}
	return ok
}

// find returns the key for a ticket; version 0 means the newest key.
func (kt keytab) find(components []string, realm string, etype int32, version uint32) (key, error) {
	var best *keytabEntry
	var versions []uint32
	for i := range kt {
		e := &kt[i]
		if e.realm != realm || !slices.Equal(e.components, components) || e.key.KeyType != etype {
			continue
		}
		versions = append(versions, e.version)
		if version == 0 && (best == nil || e.version >= best.version) || e.version == version || e.short && version != 0 && e.version == version&0xff {
			best = e
		}
	}
	if best == nil {
		return key{}, fmt.Errorf("kerberos: the keytab has no key of %.100q of encryption type %d and version %d (of this type it has the versions %v); export it again (kadmin: ktadd)",
			strings.Join(components, "/")+"@"+realm, etype, version, versions)
	}
	return newKey(best.key)
}

func (kt keytab) holds(components []string, realm string) bool {
	return slices.ContainsFunc(kt, func(e keytabEntry) bool { return e.realm == realm && slices.Equal(e.components, components) })
}
