package datatree

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/gozkd/gozkd/proto"
)

// ErrRequest is wrapped by every error of [ValidateRequest].
var ErrRequest = errors.New("datatree: malformed request record")

const requestVersion = 1

// RequestFlags are settings of the server that a request came from. They are part of the request,
// so that replicas with other settings apply the request in the same way.
type RequestFlags uint8

const (
	// FlagEnforceQuota refuses writes that exceed a hard quota.
	FlagEnforceQuota RequestFlags = 1 << iota
	// FlagSkipACL lets every ACL check pass.
	FlagSkipACL
	// FlagX509 lets ACLs name ids of the scheme x509.
	FlagX509
	// FlagSASL lets ACLs name ids of the scheme sasl.
	FlagSASL
	// FlagRefuseTTL refuses to create znodes with a time to live.
	FlagRefuseTTL
	// FlagOneVoter lets a reconfig leave a single voter.
	FlagOneVoter
	// FlagX509Text lets ids of the scheme x509 be any text, and not only distinguished names. It
	// has no effect without FlagX509.
	FlagX509Text
	// FlagMultiAddress lets the server lines of a reconfig have several addresses.
	FlagMultiAddress
)

// Request is a replicated write.
type Request struct {
	Session proto.SessionID // 0: a request of the server itself, without a session check
	// Of its connection, see SessionInfo; ignored for createSession and reattachSession.
	ConnEpoch proto.Zxid
	Op        proto.OpCode
	Flags     RequestFlags
	MaxBuffer int32      // jute.maxbuffer of the origin in bytes; 0: no limit
	IDs       []proto.ID // the caller's identities; scheme "super" passes every ACL check
	// The client's jute bytes after the request header; for internal operations the record named at
	// their op code.
	Body []byte
	// Member id of the origin, see package memberid, which owns the sessions that it creates or
	// re-attaches.
	Server uint8
}

// Append appends the record for the log. Layout: docs/reference/formats.md, "Request".
func (r *Request) Append(b []byte) []byte {
	b = append(b, requestVersion, byte(r.Flags), r.Server)
	b = binary.AppendVarint(b, int64(r.Op))
	b = binary.BigEndian.AppendUint64(b, uint64(r.Session))
	b = binary.AppendUvarint(b, uint64(r.ConnEpoch))
	b = binary.AppendUvarint(b, uint64(uint32(r.MaxBuffer)))
	b = binary.AppendUvarint(b, uint64(len(r.IDs)))
	for _, id := range r.IDs {
		b = appendText(b, id.Scheme)
		b = appendText(b, id.ID)
	}
	b = binary.AppendUvarint(b, uint64(len(r.Body)))
	return append(b, r.Body...)
}

// CommittedRequest decodes a request that is in the log. Body shares b, and IDs may be shared with
// other requests in known; if known is nil, IDs is left out, and nothing is allocated. Every member
// must treat such a record in the same way, so a record that ValidateRequest refuses is the zero
// Request, which Apply refuses with ErrUnimplemented.
func CommittedRequest(b []byte, known Identities) Request {
	r, _ := decodeRequest(b, known)
	return r
}

// ValidateRequest returns an error if b is no record of Append, or if Apply does not know
// its operation. The body is not examined: Apply answers a bad body with an error of its operation.
func ValidateRequest(b []byte) error {
	r, err := decodeRequest(b, nil)
	if err == nil && !r.Op.Info().Write {
		err = fmt.Errorf("%w: operation %d is unknown", ErrRequest, int32(r.Op))
	}
	return err
}

// decodeRequest is CommittedRequest with an error if the request is zero.
func decodeRequest(b []byte, known Identities) (Request, error) {
	d := reader{b: b}
	if v := d.byte(); d.err == nil && v != requestVersion {
		return Request{}, fmt.Errorf("%w: version %d, known is %d", ErrRequest, v, requestVersion)
	}
	r := Request{Flags: RequestFlags(d.byte()), Server: d.byte()}
	r.Op = proto.OpCode(d.int32())
	r.Session = proto.SessionID(d.fixed64())
	r.ConnEpoch = proto.Zxid(d.uvarint())
	r.MaxBuffer = int32(d.uint32())
	ids := d.b
	for range d.count(2) {
		_, _ = d.bytes(), d.bytes()
	}
	ids = ids[:len(ids)-len(d.b)]
	r.Body = d.bytes()
	if err := d.end(); err != nil {
		return Request{}, fmt.Errorf("%w: %w", ErrRequest, err)
	}
	r.IDs = known.decode(ids)
	return r, nil
}

// Identities holds the identities of requests by their encoding. Many requests are of few clients,
// so most share the identities of an earlier request.
type Identities map[string][]proto.ID

// An Identities has at most maxIdentities lists of at most maxIdentityBytes: clients choose them.
const maxIdentities, maxIdentityBytes = 64, 256

// decode returns the identities with an encoding, which is valid. Without k there are none.
func (k Identities) decode(list []byte) []proto.ID {
	ids, known := k[string(list)]
	if known || k == nil {
		return ids
	}
	d := reader{b: list}
	for range d.count(2) { // an id takes at least two bytes, so the input bounds the allocation
		ids = append(ids, proto.ID{Scheme: d.text(), ID: d.text()})
	}
	if len(k) == maxIdentities {
		clear(k)
	}
	if len(list) <= maxIdentityBytes {
		k[string(list)] = ids
	}
	return ids
}
