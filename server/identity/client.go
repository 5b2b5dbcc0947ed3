package identity

import (
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"sort"
	"time"
	"unicode/utf16"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
	"github.com/gozkd/gozkd/sasl"
)

// maxIDBytes bounds the identities of a client: each of its writes carries them into the log.
const maxIDBytes = 8 << 10

// Client holds the identities that a client has proved. It is not safe for concurrent use.
type Client struct {
	IDs  []proto.ID        // in ZooKeeper's order; replaced, never changed in place; Shown is for others to see
	Leaf *x509.Certificate // of the client, verified, with an identity x509; nil: none
	SASL *Exchange         // nil: it has not begun
}

// NewClient returns a client at an address that has proved to be ids elsewhere.
func NewClient(address string, ids ...proto.ID) Client {
	c := Client{IDs: append([]proto.ID{{Scheme: SchemeIP, ID: address}}, ids...)}
	order(c.IDs)
	return c
}

// Admitted reports whether the client may send such a request. If schemes are required, requests
// other than auth and sasl need an identity of one of these schemes.
func (c *Client) Admitted(op proto.OpCode, required []string) bool {
	return len(required) == 0 || op == proto.OpAuth || op == proto.OpSASL ||
		slices.ContainsFunc(c.IDs, func(id proto.ID) bool { return slices.Contains(required, id.Scheme) })
}

// add adds identities, for requests that come after it, and returns an error if there is no room.
func (c *Client) add(more ...proto.ID) error {
	ids := slices.Clone(c.IDs) // requests under way keep the old list
	for _, id := range more {
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	size := 0
	for _, id := range ids {
		size += len(id.Scheme) + len(id.ID)
	}
	if size > maxIDBytes {
		return fmt.Errorf("the identities of the connection would have more than %d bytes", maxIDBytes)
	}
	order(ids)
	c.IDs = ids
	return nil
}

// Auth adds the identities that an auth packet proves, and returns the code of the answer. After
// ErrBadArguments the client, which looks for another ensemble, must get no answer: after an
// answer, it would not try the next server.
func (c *Client) Auth(a *Authority, scheme string, credentials []byte) proto.ErrCode {
	s, code := a.settings.Load(), proto.ErrAuthFailed
	switch {
	case scheme == SchemeIP: // every client has this identity already
		return proto.OK
	case scheme == SchemeX509 && c.Leaf != nil: // a client with a verified certificate has this identity already
		return proto.OK
	case scheme == schemeEnsemble && s.Ensemble:
		names := s.EnsembleNames
		if len(credentials) == 0 || len(names) == 0 || slices.Contains(names, jute.Text(credentials)) {
			return proto.OK
		}
		code = proto.ErrBadArguments
	case scheme == SchemeDigest && credentials != nil && !s.DisableDigest:
		if c.add(s.digest(jute.Text(credentials))...) == nil {
			return proto.OK
		}
	}
	a.hooks.Failed()
	return code
}

// Certified adds the identities that the client's verified certificate proves.
func (c *Client) Certified(a *Authority, leaf *x509.Certificate) error {
	ids, err := a.IdentifyCertificate(leaf)
	if err == nil {
		err = c.add(ids...)
	}
	if err != nil {
		a.hooks.Failed()
		return err
	}
	c.Leaf = leaf
	return nil
}

// These bound an exchange besides the time that its last token must keep.
const (
	maxTokens = 16
	maxToken  = 128 << 10 // bytes; a Kerberos ticket may have 64 KiB
)

// Exchange is the SASL exchange of a client, which has at most one. The goroutine that reads from
// the client owns it.
type Exchange struct {
	Begun     time.Time     // by the runtime's clock
	mechanism sasl.Exchange // nil: over
	tokens    int
	next      *Answer // to the last token; nil: it was given
}

// Answer is the answer to a token.
type Answer struct {
	Code  proto.ErrCode // not OK: the connection closes afterwards
	Reply []byte
	ID    string // of the client, if the token was the last
	Done  bool
	Err   error // why the client has not proved who it is, even if Code is OK
}

// Exchange returns a new exchange, or nil if there is no SASL.
func (a *Authority) Exchange(now time.Time) *Exchange {
	if mechanism := a.settings.Load().SASL; mechanism != nil {
		return &Exchange{mechanism: mechanism.New(), Begun: now}
	}
	return nil
}

// Step hands a token to the mechanism, which may take ms. The exchange has lasted for elapsed.
func (x *Exchange) Step(token []byte, elapsed, limit time.Duration) {
	next := new(Answer)
	x.next = next
	x.tokens++
	switch {
	case len(token) > maxToken:
		next.Err = fmt.Errorf("the token has %d bytes, allowed are %d", len(token), maxToken)
	case x.tokens > maxTokens:
		next.Err = fmt.Errorf("the exchange has more than %d tokens", maxTokens)
	case elapsed > limit:
		next.Err = fmt.Errorf("the exchange took longer than %v", limit)
	default:
		next.Reply, next.ID, next.Done, next.Err = x.mechanism.Step(token)
	}
	if next.Done || next.Err != nil {
		x.mechanism = nil
	}
}

// Answer answers the client's last token. not ok: the Exchange must make a Step of it first.
func (c *Client) Answer(a *Authority) (answer Answer, ok bool) {
	s, x := a.settings.Load(), c.SASL
	switch {
	case x == nil && s.SASL == nil: // as a ZooKeeper without a SASL configuration
		return Answer{}, true
	case x == nil || x.mechanism != nil && x.next == nil:
		return Answer{}, false
	case x.next == nil:
		answer.Err = errors.New("the exchange of this connection is over")
	default:
		answer, x.next = *x.next, nil
	}
	if answer.Err == nil && answer.Done {
		answer.Err = c.add(a.IdentifySASL(answer.ID)...)
	}
	if answer.Err == nil {
		return answer, true
	}
	a.hooks.Failed()
	answer = Answer{Err: answer.Err, Code: proto.ErrAuthFailed}
	switch {
	case slices.Contains(s.Required, SchemeSASL):
		answer.Code = proto.ErrSessionClosedRequireSASLAuth
	case s.AllowFailedSASL:
		answer.Code = proto.OK
	}
	return answer, true
}

// order sorts identities as ZooKeeper lists them, in whoAmI and where the scheme auth in an ACL
// becomes the client's identities: in the order of a Java hash set. ids are in the order in which
// they were added, which decides between equals.
func order(ids []proto.ID) {
	slots := uint32(16)
	for len(ids) >= int(slots/4*3) {
		slots *= 2
	}
	sort.SliceStable(ids, func(i, j int) bool { return slotOf(ids[i])&(slots-1) < slotOf(ids[j])&(slots-1) })
}

// slotOf returns a number whose low bits are the place of an id in Java's ConcurrentHashMap.
func slotOf(id proto.ID) uint32 {
	h := (17*37+javaHash(id.Scheme))*37 + javaHash(id.ID)
	return h ^ h>>16
}

func javaHash(s string) (h uint32) {
	for _, unit := range utf16.Encode([]rune(s)) {
		h = 31*h + uint32(unit)
	}
	return h
}
