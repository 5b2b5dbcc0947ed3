package kerberos

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	gokeytab "github.com/jcmturner/gokrb5/v8/keytab"
)

// errKeytab is the only error about the content of a keytab, which is secret.
var errKeytab = errors.New("not a keytab, or damaged; export it again (kadmin: ktadd)")

// keytab holds the keys of a keytab file.
type keytab struct{ *gokeytab.Keytab }

// parseKeytab parses the format of MIT's file_keytab, version 2.
func parseKeytab(b []byte) (keytab, error) {
	kt := keytab{gokeytab.New()}
	if len(b) < 2 || b[1] != 2 || kt.Unmarshal(b) != nil { // the error contains the file
		return keytab{}, errKeytab
	}
	return kt, nil
}

// find returns the key for a ticket; version 0 means the newest key. Of a version in a keytab, only
// the last 8 bits may be known.
func (kt keytab) find(components []string, realm string, etype int32, version uint32) (key, error) {
	var versions []uint32
	best := -1
	for i, e := range kt.Entries {
		if e.Principal.Realm != realm || !slices.Equal(e.Principal.Components, components) || e.Key.KeyType != etype {
			continue
		}
		versions = append(versions, e.KVNO)
		newer := best < 0 || e.KVNO >= kt.Entries[best].KVNO
		if version == 0 && newer || e.KVNO == version || best < 0 && e.KVNO == version&0xff {
			best = i
		}
	}
	if best < 0 {
		return key{}, fmt.Errorf("kerberos: the keytab has no key of %.100q of encryption type %d and version %d (of this type it has the versions %v); export it again (kadmin: ktadd)",
			strings.Join(components, "/")+"@"+realm, etype, version, versions)
	}
	return newKey(kt.Entries[best].Key)
}

func (kt keytab) holds(components []string, realm string) bool {
	for _, e := range kt.Entries {
		if e.Principal.Realm == realm && slices.Equal(e.Principal.Components, components) {
			return true
		}
	}
	return false
}
