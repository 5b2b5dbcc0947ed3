package x509name_test

import (
	"bytes"
	"encoding/asn1"
	"slices"
	"testing"
	"unicode/utf16"
)

// The attributes that tests name most.
var (
	CN           = asn1.ObjectIdentifier{2, 5, 4, 3}
	SerialNumber = asn1.ObjectIdentifier{2, 5, 4, 5}
	C            = asn1.ObjectIdentifier{2, 5, 4, 6}
	L            = asn1.ObjectIdentifier{2, 5, 4, 7}
	ST           = asn1.ObjectIdentifier{2, 5, 4, 8}
	Street       = asn1.ObjectIdentifier{2, 5, 4, 9}
	O            = asn1.ObjectIdentifier{2, 5, 4, 10}
	OU           = asn1.ObjectIdentifier{2, 5, 4, 11}
	Title        = asn1.ObjectIdentifier{2, 5, 4, 12}
	PostalCode   = asn1.ObjectIdentifier{2, 5, 4, 17}
	UID          = asn1.ObjectIdentifier{0, 9, 2342, 19200300, 100, 1, 1}
	DC           = asn1.ObjectIdentifier{0, 9, 2342, 19200300, 100, 1, 25}
	Email        = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 1}
)

// The ASN.1 types of strings that subjects contain.
const (
	UTF8      = asn1.TagUTF8String
	Numeric   = asn1.TagNumericString
	Printable = asn1.TagPrintableString
	T61       = asn1.TagT61String
	IA5       = asn1.TagIA5String
	General   = asn1.TagGeneralString
	Universal = 28
	BMP       = asn1.TagBMPString
)

// Attr is an attribute of a subject. Tag is the ASN.1 type of its value; 0 means UTF8.
type Attr struct {
	OID   asn1.ObjectIdentifier
	Tag   int
	Value string
}

// Name is a subject: relative distinguished names in the order of the certificate, which is the
// reverse of the written order. One with several attributes is multi-valued.
type Name [][]Attr

// DER returns the encoding. The attributes of a multi-valued name are put into DER's order.
func (n Name) DER(t testing.TB) []byte {
	t.Helper()
	var rdns []byte
	for _, rdn := range n {
		var attrs [][]byte
		for _, a := range rdn {
			oid, err := asn1.Marshal(a.OID)
			if err != nil {
				t.Fatal(err)
			}
			attrs = append(attrs, wrap(t, asn1.TagSequence, append(oid, a.value(t)...)))
		}
		slices.SortFunc(attrs, bytes.Compare)
		rdns = append(rdns, wrap(t, asn1.TagSet, bytes.Join(attrs, nil))...)
	}
	return wrap(t, asn1.TagSequence, rdns)
}

// value returns the encoding of the value.
func (a Attr) value(t testing.TB) []byte {
	var text []byte
	switch a.Tag {
	case 0:
		return wrap(t, UTF8, []byte(a.Value))
	case BMP:
		for _, u := range utf16.Encode([]rune(a.Value)) {
			text = append(text, byte(u>>8), byte(u))
		}
	case Universal:
		for _, r := range a.Value {
			text = append(text, byte(r>>24), byte(r>>16), byte(r>>8), byte(r))
		}
	default:
		text = []byte(a.Value)
	}
	return wrap(t, a.Tag, text)
}

func wrap(t testing.TB, tag int, content []byte) []byte {
	t.Helper()
	der, err := asn1.Marshal(asn1.RawValue{Tag: tag, IsCompound: tag == asn1.TagSequence || tag == asn1.TagSet, Bytes: content})
	if err != nil {
		t.Fatal(err)
	}
	return der
}
