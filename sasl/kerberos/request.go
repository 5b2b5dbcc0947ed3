package kerberos

import (
	"crypto/rand"
	"encoding/asn1"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jcmturner/gokrb5/v8/iana/flags"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"

	"github.com/gozkd/gozkd/sasl/kerberos/principal"
)

// Key usage numbers, RFC 4120, 7.5.1.
const (
	usageTicket        = 2
	usageAuthenticator = 11
	usageAPRep         = 12
)

const (
	version5 = 5 // of Kerberos, in each message

	// The "checksum" in a GSS-API authenticator holds channel bindings and flags: RFC 4121, 4.1.1.
	// The bindings are ignored, as in Java's server.
	checksumGSS  = 0x8003
	flagsAt      = 20 // offset of the flags
	flagMutual   = 1 << 1
	flagInteg    = 1 << 5
	bindingBytes = 16
)

type established struct {
	name    principal.Name
	session key // that the ticket holds
	subkey  key // that the client chose; session by default
	mutual  bool
	time    time.Time // of the client's clock
	micro   int
	seq     uint64 // of the client's wrap token
	ownSeq  uint64 // of ours
}

func (e established) channel() channel { return channel{key: e.subkey, acceptor: true} }

func (s *Server) verify(message []byte) (established, error) {
	var req messages.APReq
	if err := req.Unmarshal(message); err != nil {
		return established{}, errors.New("kerberos: the AP-REQ cannot be decoded") // gokrb5's error contains it
	}
	if req.PVNO != version5 || req.Ticket.TktVNO != version5 {
		return established{}, errors.New("kerberos: the AP-REQ is not of Kerberos 5")
	}
	if req.APOptions.At(flags.APOptionUseSessionKey) == 1 {
		return established{}, errors.New("kerberos: user-to-user authentication is not supported")
	}
	now := s.config.Now()
	ticket, err := s.ticket(&req.Ticket, now)
	if err != nil {
		return established{}, err
	}
	e := established{}
	if e.name, err = principal.Join(ticket.CName.NameString, ticket.CRealm); err != nil {
		return established{}, err
	}
	if e.session, err = newKey(ticket.Key); err != nil {
		return established{}, err
	}
	if err := e.authenticate(req.EncryptedAuthenticator, ticket, now, s.config.ClockSkew); err != nil {
		return established{}, fmt.Errorf("client %q: %w", e.name, err)
	}
	// Last, so that only owners of tickets can fill the replay cache.
	if err := s.replays.add(req.EncryptedAuthenticator.Cipher, now); err != nil {
		return established{}, fmt.Errorf("client %q: %w", e.name, err)
	}
	return e, nil
}

// ticket decrypts and checks a ticket, except its addresses, as Java does: KDCs leave them out.
func (s *Server) ticket(t *messages.Ticket, now time.Time) (*messages.EncTicketPart, error) {
	if s.components != nil && (t.Realm != s.realm || !slices.Equal(t.SName.NameString, s.components)) {
		return nil, fmt.Errorf("kerberos: the client has a ticket for %.100q, and this server is %s; check how the client names the server, and the reverse DNS of its host",
			strings.Join(t.SName.NameString, "/")+"@"+t.Realm, s.config.Principal)
	}
	if _, ok := keySizes[t.EncPart.EType]; !ok {
		return nil, fmt.Errorf("kerberos: the ticket is encrypted with type %d, which is not allowed; give the principal of the server AES keys", t.EncPart.EType)
	}
	key, err := s.keytab().find(t.SName.NameString, t.Realm, t.EncPart.EType, uint32(t.EncPart.KVNO))
	if err != nil {
		return nil, err
	}
	text, err := key.decrypt(t.EncPart.Cipher, usageTicket)
	if err != nil {
		return nil, errors.New("kerberos: the ticket cannot be decrypted with the key in the keytab, which is then not that of the KDC; export it again (kadmin: ktadd)")
	}
	var part messages.EncTicketPart
	if err := part.Unmarshal(text); err != nil {
		return nil, errors.New("kerberos: the decrypted ticket cannot be decoded")
	}
	skew, start := s.config.ClockSkew, part.StartTime
	if start.IsZero() {
		start = part.AuthTime
	}
	switch {
	case start.Sub(now) > skew || part.Flags.At(flags.Invalid) == 1:
		return nil, errors.New("kerberos: the ticket is not yet valid; compare the clocks of the KDC and of this machine")
	case now.Sub(part.EndTime) > skew:
		return nil, errors.New("kerberos: the ticket has expired")
	case len(part.Transited.Contents) > 0 && part.Flags.At(flags.TransitedPolicyChecked) == 0:
		return nil, errors.New("kerberos: the ticket came through other realms, and the KDC has not checked which")
	}
	return &part, nil
}

// authenticate decrypts and checks the authenticator: proof that the client has the ticket's key.
func (e *established) authenticate(data types.EncryptedData, ticket *messages.EncTicketPart, now time.Time, skew time.Duration) error {
	text, err := e.session.decrypt(data.Cipher, usageAuthenticator)
	if err != nil {
		return errors.New("kerberos: the authenticator cannot be decrypted with the key of the ticket")
	}
	var a types.Authenticator
	if err := a.Unmarshal(text); err != nil {
		return errors.New("kerberos: the authenticator cannot be decoded")
	}
	// The realm too: a client writes its authenticator itself.
	if a.AVNO != version5 || a.CRealm != ticket.CRealm || !slices.Equal(a.CName.NameString, ticket.CName.NameString) {
		return errors.New("kerberos: the authenticator names another client than the ticket")
	}
	e.time, e.micro = a.CTime.UTC(), a.Cusec
	if e.micro < 0 || e.micro > 999_999 {
		return errors.New("kerberos: the authenticator has no time")
	}
	if d := now.Sub(e.time.Add(time.Duration(e.micro) * time.Microsecond)).Abs(); d > skew {
		return fmt.Errorf("kerberos: the clocks of the client and of this server differ by %s, allowed are %s", d.Round(time.Second), skew)
	}
	if sum := a.Cksum; sum.CksumType != checksumGSS || len(sum.Checksum) < flagsAt+4 || binary.LittleEndian.Uint32(sum.Checksum) != bindingBytes {
		return errors.New("kerberos: the authenticator is not one of GSS-API")
	}
	e.mutual = binary.LittleEndian.Uint32(a.Cksum.Checksum[flagsAt:])&flagMutual != 0
	e.subkey = e.session
	if a.SubKey.KeyType != 0 || len(a.SubKey.KeyValue) > 0 {
		if e.subkey, err = newKey(a.SubKey); err != nil {
			return err
		}
	}
	// Some encode the upper half of the numbers as negative.
	e.seq = uint64(uint32(a.SeqNumber))
	e.ownSeq = e.seq
	return nil
}

// encryptedData and the following are messages of RFC 4120 without names, which the standard
// library can encode.
type encryptedData struct {
	EType  int32  `asn1:"explicit,tag:0"`
	Cipher []byte `asn1:"explicit,tag:2"`
}

type apRep struct {
	PVNO    int           `asn1:"explicit,tag:0"`
	MsgType int           `asn1:"explicit,tag:1"`
	EncPart encryptedData `asn1:"explicit,tag:2"`
}

type encAPRepPart struct {
	CTime time.Time `asn1:"generalized,explicit,tag:0"`
	Cusec int       `asn1:"explicit,tag:1"`
	Seq   int64     `asn1:"explicit,tag:3"`
}

const msgAPRep = 15 // AP-REP, RFC 4120, 5.10

// reply returns an AP-REP, which proves that the server knows the key of the ticket. It also sets
// the sequence number of the server's wrap token.
func (e *established) reply() ([]byte, error) {
	var random [4]byte
	_, _ = rand.Read(random[:])                                         // never fails
	e.ownSeq = uint64(binary.BigEndian.Uint32(random[:]) & (1<<30 - 1)) // some take larger numbers as negative
	part, err := asn1.MarshalWithParams(encAPRepPart{CTime: e.time, Cusec: e.micro, Seq: int64(e.ownSeq)}, "application,explicit,tag:27")
	if err != nil {
		return nil, err
	}
	cipher, err := e.session.encrypt(part, usageAPRep)
	if err != nil {
		return nil, err
	}
	message, err := asn1.MarshalWithParams(apRep{
		PVNO: version5, MsgType: msgAPRep, EncPart: encryptedData{e.session.etype.GetETypeID(), cipher},
	}, "application,explicit,tag:15")
	return frame(kindAPRep, message), err
}
