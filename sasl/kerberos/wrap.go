package kerberos

import (
	"bytes"
	"crypto/hmac"
	"encoding/binary"
	"errors"
	"fmt"
)

// Flags of a wrap token and key usage numbers, RFC 4121, 4.2.2 and 2.
const (
	sentByAcceptor = 1 << 0
	sealed         = 1 << 1
	acceptorSubkey = 1 << 2

	usageAcceptorSeal  = 22
	usageInitiatorSeal = 24
)

// wrapHeader is the size of a wrap token's header: kind, flags, filler, EC, RRC, sequence number.
const wrapHeader = 16

// channel makes and reads the wrap tokens of an established context.
type channel struct {
	key      key
	acceptor bool // this side is the acceptor
	// subkeyOfAcceptor: the acceptor chose key.
	subkeyOfAcceptor bool
}

// flags returns those of tokens of the acceptor or the initiator.
func (c channel) flags(acceptor bool) byte {
	var f byte
	if acceptor {
		f |= sentByAcceptor
	}
	if c.subkeyOfAcceptor {
		f |= acceptorSubkey
	}
	return f
}

func usage(acceptor bool) uint32 {
	if acceptor {
		return usageAcceptorSeal
	}
	return usageInitiatorSeal
}

// wrap returns a token with a readable payload and its checksum.
func (c channel) wrap(payload []byte, seq uint64) ([]byte, error) {
	header := []byte{5, 4, c.flags(c.acceptor), 0xff, 0, 0, 0, 0}
	header = binary.BigEndian.AppendUint64(header, seq)
	sum, err := c.checksum(payload, header, c.acceptor)
	if err != nil {
		return nil, err
	}
	binary.BigEndian.PutUint16(header[4:], uint16(len(sum)))
	return bytes.Join([][]byte{header, payload, sum}, nil), nil
}

// checksum is over the payload and the header, in which EC and RRC count as 0.
func (c channel) checksum(payload, header []byte, acceptor bool) ([]byte, error) {
	clear(header[4:8])
	return c.key.etype.GetChecksumHash(c.key.bytes, append(bytes.Clone(payload), header...), usage(acceptor))
}

var errChecksum = errors.New("kerberos: the checksum of a wrap token is wrong")

// unwrap returns the payload and the sequence number of the peer's token, which may be sealed.
func (c channel) unwrap(token []byte) (payload []byte, seq uint64, err error) {
	if len(token) < wrapHeader || token[0] != 5 || token[1] != 4 || token[3] != 0xff {
		return nil, 0, errors.New("kerberos: the token is no wrap token")
	}
	header := bytes.Clone(token[:wrapHeader])
	if want := c.flags(!c.acceptor); header[2]&^sealed != want {
		return nil, 0, fmt.Errorf("kerberos: a wrap token has the flags %#x, and the peer's have %#x", header[2], want)
	}
	extra, rotated := int(binary.BigEndian.Uint16(header[4:])), int(binary.BigEndian.Uint16(header[6:]))
	seq = binary.BigEndian.Uint64(header[8:])
	body := token[wrapHeader:]
	if len(body) > 0 { // the sender has rotated the body to the right
		rotated %= len(body)
		body = append(bytes.Clone(body[rotated:]), body[:rotated]...)
	}
	if header[2]&sealed != 0 {
		payload, err = c.unseal(body, header, extra)
		return payload, seq, err
	}
	if extra != c.key.mac() || len(body) < extra {
		return nil, 0, errChecksum
	}
	payload = body[:len(body)-extra]
	sum, err := c.checksum(payload, header, !c.acceptor)
	if err != nil {
		return nil, 0, err
	}
	if !hmac.Equal(sum, body[len(payload):]) {
		return nil, 0, errChecksum
	}
	return payload, seq, nil
}

// unseal returns the payload of a ciphertext, which extra bytes and the header with RRC 0 follow.
func (c channel) unseal(body, header []byte, extra int) ([]byte, error) {
	text, err := c.key.decrypt(body, usage(!c.acceptor))
	if err != nil {
		return nil, err
	}
	binary.BigEndian.PutUint16(header[6:], 0)
	end := len(text) - wrapHeader - extra
	if end < 0 || !bytes.Equal(text[len(text)-wrapHeader:], header) {
		return nil, errChecksum
	}
	return text[:end], nil
}
