package kerberos

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/jcmturner/gokrb5/v8/client"
	"github.com/jcmturner/gokrb5/v8/iana/flags"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"

	"github.com/gozkd/gozkd/sasl"
	"github.com/gozkd/gozkd/sasl/kerberos/principal"
)

// ClientConfig configures a Client.
type ClientConfig struct {
	// Conf says where the KDCs are.
	Conf *Conf
	// KeyTab is a file with the key of Principal. "": TicketCache.
	KeyTab string
	// Principal is the client's principal, name[/host][@REALM]. Without a realm, it belongs to the
	// default realm. With a ticket cache, Principal must be empty or that of the cache.
	Principal string
	// TicketCache is a file with tickets, as kinit makes it. A leading "FILE:" is ignored.
	TicketCache string
	// Service is the principal of the server, name[/host][@REALM]. Without a host, the dialed host
	// is added. "" means DefaultService.
	Service string
	// Canonicalize replaces the dialed host by the name that the DNS has for its address, as
	// ZooKeeper's client does. Whoever controls the DNS then chooses the principal of the server.
	Canonicalize bool
	// Mutual demands that the server prove its identity too. Java's client does not ask for it.
	Mutual bool
}

// DefaultService is the first component of the principals of servers, unless configured otherwise.
const DefaultService = "zookeeper"

// Client is the initiator. It implements sasl.Client.
type Client struct {
	config ClientConfig
	// tickets returns a ticket for a service with its key, and the client's name.
	tickets func(service principal.Name) (ticket, error)
}

type ticket struct {
	ticket messages.Ticket
	key    types.EncryptionKey
	realm  string // of the client
	name   types.PrincipalName
}

var _ sasl.Client = (*Client)(nil)

// NewClient reads the keytab or the ticket cache and returns a Client. It does not contact a KDC.
func NewClient(config ClientConfig) (*Client, error) {
	c := &Client{config: config}
	c.tickets = c.fromKDC
	c.config.Service = cmp.Or(c.config.Service, DefaultService)
	login, err := c.login()
	if err != nil {
		return nil, err
	}
	login.Destroy()
	return c, nil
}

// login returns a KDC client with the present credentials of the keytab or the ticket cache.
func (c *Client) login() (*client.Client, error) {
	noFAST := client.DisablePAFXFAST(true) // Active Directory refuses gokrb5's
	name, realm, _ := strings.Cut(c.config.Principal, "@")
	realm = cmp.Or(realm, c.config.Conf.DefaultRealm())
	if c.config.KeyTab != "" {
		file, err := os.ReadFile(c.config.KeyTab)
		if err != nil {
			return nil, fmt.Errorf("kerberos: the keytab cannot be read: %w", err)
		}
		kt, err := parseKeytab(file)
		if err != nil {
			return nil, fmt.Errorf("kerberos: %s: %w", c.config.KeyTab, err)
		}
		if name == "" || realm == "" {
			return nil, fmt.Errorf("kerberos: the principal %q of the client needs a name and a realm (krb5.conf has no default_realm)", c.config.Principal)
		}
		if !kt.holds(strings.Split(name, "/"), realm) {
			return nil, fmt.Errorf("kerberos: %s has no key of %s@%s", c.config.KeyTab, name, realm)
		}
		return client.NewWithKeytab(name, realm, kt.Keytab, c.config.Conf.conf, noFAST), nil
	}
	cache, err := loadCache(c.config.TicketCache)
	if err != nil {
		return nil, err
	}
	login, err := client.NewFromCCache(cache, c.config.Conf.conf, noFAST)
	if err != nil {
		return nil, fmt.Errorf("kerberos: %s: %w; run kinit", c.config.TicketCache, err)
	}
	owner := login.Credentials.CName().PrincipalNameString()
	if ownerRealm := login.Credentials.Domain(); name != "" && (owner != name || ownerRealm != realm) {
		return nil, fmt.Errorf("kerberos: the tickets in %s are those of %s@%s, and not of %s@%s; run kinit", c.config.TicketCache, owner, ownerRealm, name, realm)
	}
	return login, nil
}

// fromKDC logs in and requests a ticket. It drops the credentials afterwards: each connection logs
// in again, and no goroutine renews credentials in the background.
func (c *Client) fromKDC(service principal.Name) (ticket, error) {
	login, err := c.login()
	if err != nil {
		return ticket{}, err
	}
	defer login.Destroy()
	if service.Realm != "" && service.HasHost {
		conf := *login.Config
		conf.DomainRealm = map[string]string{service.Host: service.Realm}
		login.Config = &conf
	}
	t := ticket{realm: login.Credentials.Domain(), name: login.Credentials.CName()}
	service.HasRealm = false
	if t.ticket, t.key, err = login.GetServiceTicket(service.String()); err != nil {
		return ticket{}, fmt.Errorf("kerberos: no ticket for %s: %w", service, err)
	}
	return t, nil
}

// New starts an exchange with the server at host.
func (c *Client) New(host string) (sasl.ClientExchange, error) {
	service, realm, _ := strings.Cut(c.config.Service, "@")
	if !strings.Contains(service, "/") {
		if c.config.Canonicalize {
			host = canonical(host)
		}
		service += "/" + strings.ToLower(host)
	}
	name, err := principal.Parse(service + "@" + realm)
	if err != nil {
		return nil, fmt.Errorf("kerberos: the principal of the server: %w", err)
	}
	t, err := c.tickets(name)
	if err != nil {
		return nil, err
	}
	e := &initiation{ticket: t, mutual: c.config.Mutual}
	e.next = e.request
	e.session, err = newKey(t.key)
	return e, err
}

const lookupTimeout = 5 * time.Second

// canonical returns the DNS name of a host's address, or the host itself if there is none.
func canonical(host string) string {
	ctx, cancel := context.WithTimeout(context.Background(), lookupTimeout)
	defer cancel()
	addresses, err := net.DefaultResolver.LookupHost(ctx, host)
	if err != nil || len(addresses) == 0 {
		return host
	}
	names, err := net.DefaultResolver.LookupAddr(ctx, addresses[0])
	if err != nil || len(names) == 0 {
		return host
	}
	return strings.TrimSuffix(names[0], ".")
}

type initiation struct {
	ticket        ticket
	session       key
	mutual        bool
	authenticator types.Authenticator
	channel       channel
	next          func(token []byte) (reply []byte, done bool, err error)
}

func (e *initiation) Step(token []byte) (reply []byte, done bool, err error) {
	if len(token) > maxToken {
		return nil, false, fmt.Errorf("kerberos: a token of the server has %d bytes, allowed are %d", len(token), maxToken)
	}
	return e.next(token)
}

// request returns the AP-REQ.
func (e *initiation) request([]byte) (reply []byte, done bool, err error) {
	a, err := types.NewAuthenticator(e.ticket.realm, e.ticket.name)
	if err != nil {
		return nil, false, err
	}
	etype := e.session.etype.GetETypeID()
	if err := a.GenerateSeqNumberAndSubKey(etype, keySizes[etype]); err != nil {
		return nil, false, err
	}
	wants := uint32(flagInteg)
	if e.mutual {
		wants |= flagMutual
	}
	sum := binary.LittleEndian.AppendUint32(nil, bindingBytes)
	sum = append(sum, make([]byte, bindingBytes)...)
	a.Cksum = types.Checksum{CksumType: checksumGSS, Checksum: binary.LittleEndian.AppendUint32(sum, wants)}
	subkey, err := newKey(a.SubKey)
	if err != nil {
		return nil, false, err
	}
	e.authenticator, e.channel = a, channel{key: subkey}
	req, err := messages.NewAPReq(e.ticket.ticket, e.ticket.key, a)
	if err != nil {
		return nil, false, err
	}
	e.next = e.choose
	if e.mutual {
		types.SetFlag(&req.APOptions, flags.APOptionMutualRequired)
		e.next = e.check
	}
	message, err := req.Marshal()
	return frame(kindAPReq, message), false, err
}

// check takes the AP-REP, which proves the identity of the server.
func (e *initiation) check(token []byte) (reply []byte, done bool, err error) {
	kind, message, err := unframe(token)
	if err != nil {
		return nil, false, err
	}
	if kind != kindAPRep {
		return nil, false, fmt.Errorf("kerberos: the server's token is of kind %#04x, and not an AP-REP", kind)
	}
	var rep messages.APRep
	var part messages.EncAPRepPart
	if rep.Unmarshal(message) != nil {
		return nil, false, errors.New("kerberos: the AP-REP cannot be decoded")
	}
	text, err := e.session.decrypt(rep.EncPart.Cipher, usageAPRep)
	if err != nil || part.Unmarshal(text) != nil {
		return nil, false, errors.New("kerberos: the server has not proved who it is: its AP-REP cannot be decrypted")
	}
	if part.CTime.Unix() != e.authenticator.CTime.Unix() || part.Cusec != e.authenticator.Cusec {
		return nil, false, errors.New("kerberos: the server has not proved who it is: its AP-REP answers another request")
	}
	if part.Subkey.KeyType != 0 {
		if e.channel.key, err = newKey(part.Subkey); err != nil {
			return nil, false, err
		}
		e.channel.subkeyOfAcceptor = true
	}
	e.next = e.choose
	return []byte{}, false, nil
}

// choose takes the offered security layers and answers "none".
func (e *initiation) choose(token []byte) (reply []byte, done bool, err error) {
	payload, _, err := e.channel.unwrap(token)
	if err != nil {
		return nil, false, err
	}
	layers, err := layer(payload)
	if err != nil {
		return nil, false, err
	}
	if layers&layerNone == 0 {
		return nil, false, errors.New("kerberos: the server demands that messages be signed or encrypted, which ZooKeeper's protocol cannot do")
	}
	e.next = func([]byte) ([]byte, bool, error) { return nil, false, errors.New("kerberos: the exchange is over") }
	reply, err = e.channel.wrap(choice, uint64(e.authenticator.SeqNumber))
	return reply, err == nil, err
}
