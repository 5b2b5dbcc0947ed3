package kerberos

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jcmturner/gokrb5/v8/types"
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
func parseKeytab(b []byte) (keytab, error) {
	if len(b) < 2 || b[0] != 5 || b[1] != 2 {
		return nil, errKeytab
	}
	var kt keytab
	for r := (reader{rest: b[2:]}); len(r.rest) > 0; {
		size := int64(int32(r.uint32()))
		if size == 0 && !r.failed { // the end of a file that was allocated larger
			break
		}
		if size < 0 { // a deleted entry
			r.take(-size)
			if r.failed {
				return nil, errKeytab
			}
			continue
		}
		entry := reader{rest: r.take(size)}
		e := entry.keytabEntry()
		if r.failed || entry.failed {
			return nil, errKeytab
		}
		kt = append(kt, e)
	}
	return kt, nil
}

// keytabEntry parses an entry. It ignores the flags that may follow the version.
func (r *reader) keytabEntry() (e keytabEntry) {
	count := r.uint16()
	e.realm = r.text()
	for range count {
		e.components = append(e.components, r.text())
		if r.failed {
			return e
		}
	}
	r.take(4 + 4) // the type of the name, and the time
	e.version, e.short = uint32(r.uint8()), true
	e.key.KeyType = int32(r.uint16())
	e.key.KeyValue = []byte(r.text())
	if len(r.rest) >= 4 {
		if v := r.uint32(); v != 0 {
			e.version, e.short = v, false
		}
	}
	return e
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
		return key{}, fmt.Errorf("kerberos: the keytab has no key of %s of encryption type %d and version %d (of this type it has the versions %v); export it again (kadmin: ktadd)",
			shorten(strings.Join(components, "/")+"@"+realm), etype, version, versions)
	}
	return newKey(best.key)
}

// holds reports whether the keytab has a key of the principal.
func (kt keytab) holds(components []string, realm string) bool {
	return slices.ContainsFunc(kt, func(e keytabEntry) bool { return e.realm == realm && slices.Equal(e.components, components) })
}

// reader reads big-endian fields. After a read beyond the end, failed is true and the rest empty.
type reader struct {
	rest   []byte
	failed bool
}

func (r *reader) take(n int64) []byte {
	if n < 0 || n > int64(len(r.rest)) {
		r.rest, r.failed = nil, true
		return nil
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

func (r *reader) uint8() uint8 {
	if b := r.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *reader) uint16() uint16 {
	if b := r.take(2); b != nil {
		return binary.BigEndian.Uint16(b)
	}
	return 0
}

func (r *reader) uint32() uint32 {
	if b := r.take(4); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

func (r *reader) text() string { return string(r.take(int64(r.uint16()))) }
