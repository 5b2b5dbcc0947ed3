package kerberos

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/crypto/cryptobyte"
	"golang.org/x/crypto/cryptobyte/asn1"
)

// maxToken bounds tokens in bytes. Tickets with a PAC of many groups have up to 48,000 bytes.
const maxToken = 64 << 10

// mechanism is the DER of the object identifier of Kerberos 5, 1.2.840.113554.1.2.2.
var mechanism = []byte{0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x12, 0x01, 0x02, 0x02}

// Kinds of framed tokens, RFC 4121, 4.1.
const (
	kindAPReq = 0x0100
	kindAPRep = 0x0200
	kindError = 0x0300
)

// framed is the tag of each framed token. RFC 2743, 3.1.
const framed = asn1.Tag(0x60)

func unframe(token []byte) (kind uint16, message []byte, err error) {
	outer, inner := cryptobyte.String(token), cryptobyte.String(nil)
	ok := outer.ReadASN1(&inner, framed) && outer.Empty()
	rest, ours := bytes.CutPrefix(inner, mechanism)
	if !ok || !ours || len(rest) < 2 {
		return 0, nil, errors.New("kerberos: the token is no GSS-API token of Kerberos 5")
	}
	return binary.BigEndian.Uint16(rest), rest[2:], nil
}

func frame(kind uint16, message []byte) []byte {
	var b cryptobyte.Builder
	b.AddASN1(framed, func(b *cryptobyte.Builder) {
		b.AddBytes(mechanism)
		b.AddUint16(kind)
		b.AddBytes(message)
	})
	return b.BytesOrPanic() // maxToken is far below what a length can be
}

// layerNone is the bit of "no security layer" in the payloads of both wrap tokens. RFC 4752, 3.1.
const layerNone = 1

// offer is the payload of the server's wrap token, as Java sends it: no layer, and a buffer size
// that has no effect.
var offer = []byte{layerNone, 1, 0, 0}

// choice is the payload of the client's wrap token: no layer, no buffer, no authorization id.
var choice = []byte{layerNone, 0, 0, 0}

func layer(payload []byte) (byte, error) {
	if len(payload) < 4 {
		return 0, fmt.Errorf("kerberos: the message about security layers has %d bytes, and needs 4", len(payload))
	}
	return payload[0], nil
}
