// Package x509name writes the subject of a certificate as Java's X500Principal.getName does, byte
// for byte. That is the id of ZooKeeper's scheme x509, and ids are compared as text. Names.java in
// testdata is the referee.
package x509name

import (
	"encoding/asn1"
	"encoding/hex"
	"errors"
	"regexp"
	"slices"
	"strings"

	"github.com/gozkd/gozkd/proto/jute"
)

// keywords are the attributes that Java names in this form. All others are dotted numbers.
var keywords = map[string]string{
	"2.5.4.3": "CN", "2.5.4.6": "C", "2.5.4.7": "L", "2.5.4.8": "ST", "2.5.4.9": "STREET", "2.5.4.10": "O", "2.5.4.11": "OU",
	"0.9.2342.19200300.100.1.1": "UID", "0.9.2342.19200300.100.1.25": "DC",
}

var errMalformed = errors.New("the subject of the certificate is malformed")

// attribute is an AttributeTypeAndValue.
type attribute struct {
	Type  asn1.ObjectIdentifier
	Value asn1.RawValue
}

// Of returns the name of a subject, which is DER as in x509.Certificate.RawSubject. A subject
// without attributes has the name "".
func Of(rawSubject []byte) (string, error) {
	var rdns []asn1.RawValue
	if rest, err := asn1.Unmarshal(rawSubject, &rdns); err != nil || len(rest) > 0 {
		return "", errMalformed
	}
	var out strings.Builder
	for i := len(rdns) - 1; i >= 0; i-- {
		if i < len(rdns)-1 {
			out.WriteByte(',')
		}
		if err := appendRDN(&out, rdns[i]); err != nil {
			return "", err
		}
	}
	return out.String(), nil
}

// Valid reports whether name is what Of returns for a subject that has attributes.
func Valid(name string) bool { return syntax.MatchString(name) }

// syntax is that of RDNs, whose values have no space at their ends without a backslash.
var syntax = regexp.MustCompile(`^(?s)` + rdn + `([,+]` + rdn + `)*$`)

const (
	char  = `(\\.|[^,=+<>#;"\\ \r])`
	value = `(#[0-9a-f]+|(` + char + `(([ \r]|` + char + `)*` + char + `)?)?)`
	rdn   = `((CN|C|L|ST|STREET|O|OU|UID|DC)=` + value + `|[0-2](\.[0-9]+)+=#[0-9a-f]+)`
)

func appendRDN(out *strings.Builder, rdn asn1.RawValue) error {
	if rdn.Class != asn1.ClassUniversal || rdn.Tag != asn1.TagSet || !rdn.IsCompound {
		return errMalformed
	}
	for rest, first := rdn.Bytes, true; len(rest) > 0; first = false {
		var a attribute
		var err error
		if rest, err = asn1.Unmarshal(rest, &a); err != nil {
			return errMalformed
		}
		if !first {
			out.WriteByte('+')
		}
		appendAttribute(out, &a)
	}
	return nil
}

func appendAttribute(out *strings.Builder, a *attribute) {
	oid := a.Type.String()
	keyword, known := keywords[oid]
	if known && isText(&a.Value) {
		out.WriteString(keyword + "=")
		appendText(out, jute.Text(a.Value.Bytes)) // Java takes strings of all types for UTF-8
		return
	}
	if !known {
		keyword = oid
	}
	out.WriteString(keyword + "=#" + hex.EncodeToString(a.Value.FullBytes))
}

// isText reports whether Java takes a value for text.
func isText(v *asn1.RawValue) bool {
	return v.Class == asn1.ClassUniversal && !v.IsCompound && slices.Contains([]int{
		asn1.TagUTF8String, asn1.TagPrintableString, asn1.TagT61String, asn1.TagIA5String, asn1.TagGeneralString, asn1.TagBMPString,
	}, v.Tag)
}

func appendText(out *strings.Builder, text string) {
	lead := len(text) - len(strings.TrimLeft(text, " \r"))
	trail := len(strings.TrimRight(text, " \r"))
	for i, r := range text {
		switch {
		case r == 0:
			out.WriteString(`\00`)
			continue
		case strings.ContainsRune(`,=+<>#;"\`, r), i < lead, i >= trail:
			out.WriteByte('\\')
		}
		out.WriteRune(r)
	}
}
