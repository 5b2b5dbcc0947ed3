package exchange

import (
	"strconv"
	"strings"
	"unicode/utf16"

	"github.com/gozkd/gozkd/proto/jute"
)

// hasNullID reports whether the request has an ACL with a null scheme or id.
func (r *Request) hasNullID() bool {
	f := requestReader{fieldReader{d: jute.NewDecoder(r.Body)}}
	f.body(r.Op)
	for _, x := range f.fields {
		if x.S == "null" && strings.Contains(x.Name, "acl") {
			return true
		}
	}
	return false
}

// comparesNullIDs reports whether the request has an ACL of several entries with a null scheme or
// id, which ZooKeeper compares to find duplicates.
func (r *Request) comparesNullIDs() bool {
	f := requestReader{fieldReader{d: jute.NewDecoder(r.Body)}}
	f.body(r.Op)
	several := false
	for _, x := range f.fields {
		several = several || strings.Contains(x.Name, "acl1.")
	}
	return several && r.hasNullID()
}

// fromCESU8 joins each pair of three-byte surrogates in a quoted string to its character.
func fromCESU8(quoted string) string {
	s, err := strconv.Unquote(quoted)
	if err != nil {
		return quoted
	}
	surrogate := func(i int) rune {
		if i+3 > len(s) || s[i] != 0xed || s[i+1] < 0xa0 || s[i+2]&0xc0 != 0x80 {
			return 0
		}
		return rune(s[i]&0x0f)<<12 | rune(s[i+1]&0x3f)<<6 | rune(s[i+2]&0x3f)
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if hi, lo := surrogate(i), surrogate(i+3); utf16.IsSurrogate(hi) && utf16.IsSurrogate(lo) {
			b.WriteRune(utf16.DecodeRune(hi, lo))
			i += 5
			continue
		}
		b.WriteByte(s[i])
	}
	return strconv.Quote(b.String())
}
