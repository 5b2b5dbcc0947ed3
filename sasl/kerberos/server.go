package kerberos

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/internal/secretfile"
	"github.com/gozkd/gozkd/internal/sloglog"
	"github.com/gozkd/gozkd/sasl"
	"github.com/gozkd/gozkd/sasl/kerberos/principal"
)

// ServerConfig configures a Server.
type ServerConfig struct {
	// KeyTab is the file with the keys of Principal. Each exchange reads the file, so a new keytab
	// takes effect at once. While the file cannot be read or parsed, the previous keys stay in use.
	KeyTab string
	// Principal is that of the server, name/host@REALM. "*" stands for each one in the keytab.
	Principal string
	// Mapping maps principals of clients to ids.
	Mapping principal.Mapping
	// ClockSkew is the allowed difference to clients' clocks. 0 means 5 minutes.
	ClockSkew time.Duration
	// Now returns the time. nil means time.Now.
	Now func() time.Time
	// Logger gets a warning when the keytab cannot be used. nil means none.
	Logger hclog.Logger
	// Slog gets the log lines instead of Logger.
	Slog *slog.Logger
}

const maxKeyTab = 4 << 20

// defaultSkew is the clock skew that Kerberos allows unless krb5.conf says otherwise.
const defaultSkew = 5 * time.Minute

// Server is the acceptor. It implements sasl.Server.
type Server struct {
	config     ServerConfig
	components []string // of the principal; nil: all principals of the keytab
	realm      string
	replays    *replays

	mu     sync.Mutex
	file   []byte // the content that keys was parsed from
	keys   keytab
	broken string // the last warning about the file; "": there is none
}

var _ sasl.Server = (*Server)(nil)

// NewServer reads the keytab, which must hold a key of the principal, and returns a Server.
func NewServer(config ServerConfig) (*Server, error) {
	if config.Now == nil {
		config.Now = time.Now
	}
	config.Logger = sloglog.Choose(config.Slog, config.Logger)
	if config.ClockSkew <= 0 {
		config.ClockSkew = defaultSkew
	}
	s := &Server{config: config, replays: &replays{keep: 2 * config.ClockSkew}}
	if config.Principal != "*" {
		n, err := principal.Parse(config.Principal)
		if err != nil {
			return nil, err
		}
		if !n.HasHost || n.Host == "" || n.Short == "" || n.Realm == "" {
			return nil, fmt.Errorf("kerberos: the principal %q of the server is not of the form name/host@REALM", config.Principal)
		}
		s.components, s.realm = []string{n.Short, n.Host}, n.Realm
	}
	file, shared, err := secretfile.Read(config.KeyTab, maxKeyTab)
	if err != nil {
		return nil, fmt.Errorf("kerberos: the keytab cannot be read: %w", err)
	}
	if s.keys, err = s.parse(file); err != nil {
		return nil, err
	}
	s.file = file
	if shared != "" {
		config.Logger.Warn("the keytab is not protected", "keyTab", config.KeyTab, "reason", shared)
	}
	return s, nil
}

// Renew returns a server with another configuration that shares the replay cache of s. The clock
// skew stays as it is: a larger skew would admit requests that the cache has forgotten.
func (s *Server) Renew(config ServerConfig) (*Server, error) {
	config.ClockSkew = s.config.ClockSkew
	renewed, err := NewServer(config)
	if err != nil {
		return nil, err
	}
	renewed.replays = s.replays
	return renewed, nil
}

// parse returns the keys in a keytab file, which must hold a key of the principal.
func (s *Server) parse(file []byte) (keytab, error) {
	kt, err := parseKeytab(file)
	if err != nil {
		return kt, fmt.Errorf("kerberos: %s: %w", s.config.KeyTab, err)
	}
	if len(kt.Entries) == 0 || s.components != nil && !kt.holds(s.components, s.realm) {
		return kt, fmt.Errorf("kerberos: %s has no key of %s; export one (kadmin: ktadd -k FILE PRINCIPAL)", s.config.KeyTab, s.config.Principal)
	}
	return kt, nil
}

// keytab returns the present keys of the file or, if the file cannot be used, the previous keys.
func (s *Server) keytab() keytab {
	file, _, err := secretfile.Read(s.config.KeyTab, maxKeyTab)
	s.mu.Lock()
	defer s.mu.Unlock()
	var kt keytab
	if err == nil {
		if bytes.Equal(file, s.file) {
			s.broken = ""
			return s.keys
		}
		kt, err = s.parse(file)
	}
	if err != nil {
		if s.broken != err.Error() {
			s.broken = err.Error()
			s.config.Logger.Warn("the keytab cannot be used; its previous content still counts", "keyTab", s.config.KeyTab, "error", err)
		}
		return s.keys
	}
	s.file, s.keys, s.broken = file, kt, ""
	s.config.Logger.Info("the keytab was read again", "keyTab", s.config.KeyTab)
	return s.keys
}

// New starts an exchange.
func (s *Server) New() sasl.Exchange { return &acceptance{server: s} }

type acceptance struct {
	server *Server
	next   func(token []byte) (reply []byte, id string, done bool, err error) // nil: the AP-REQ
	ended  bool
	client established
}

func (a *acceptance) Step(token []byte) (reply []byte, id string, done bool, err error) {
	if a.ended {
		return nil, "", false, refuse(errors.New("kerberos: the exchange is over"))
	}
	switch {
	case len(token) > maxToken:
		err = fmt.Errorf("kerberos: a token has %d bytes, allowed are %d", len(token), maxToken)
	case a.next == nil:
		reply, id, done, err = a.request(token)
	default:
		reply, id, done, err = a.next(token)
	}
	if err != nil {
		a.ended = true
		return nil, "", false, refuse(err)
	}
	a.ended = done
	return reply, id, done, nil
}

func refuse(reason error) error { return fmt.Errorf("%w: %w", sasl.ErrRefused, reason) }

func (a *acceptance) request(token []byte) (reply []byte, id string, done bool, err error) {
	kind, message, err := unframe(token)
	if err != nil {
		return nil, "", false, err
	}
	if kind != kindAPReq {
		return nil, "", false, fmt.Errorf("kerberos: the first token is of kind %#04x, and not an AP-REQ", kind)
	}
	if a.client, err = a.server.verify(message); err != nil {
		return nil, "", false, err
	}
	if !a.client.mutual {
		return a.offer(nil)
	}
	reply, err = a.client.reply()
	a.next = a.offer
	return reply, "", false, err
}

// offer offers security layers. With mutual authentication, the client sent an empty token before.
func (a *acceptance) offer(token []byte) (reply []byte, id string, done bool, err error) {
	if len(token) != 0 {
		return nil, "", false, errors.New("kerberos: the token after the AP-REP is not empty")
	}
	a.next = a.choice
	reply, err = a.client.channel().wrap(offer, a.client.ownSeq)
	return reply, "", false, err
}

// choice takes the layer that the client chose. As in ZooKeeper, an authorization id is ignored.
func (a *acceptance) choice(token []byte) (reply []byte, id string, done bool, err error) {
	payload, seq, err := a.client.channel().unwrap(token)
	if err != nil {
		return nil, "", false, err
	}
	if seq != a.client.seq {
		return nil, "", false, errors.New("kerberos: a wrap token has another sequence number than its place in the exchange")
	}
	chosen, err := layer(payload)
	if err != nil {
		return nil, "", false, err
	}
	if chosen != layerNone {
		return nil, "", false, fmt.Errorf("kerberos: the client asks for the security layer %#x, and only %#x (none) was offered", chosen, layerNone)
	}
	id, err = a.server.config.Mapping.ID(a.client.name)
	return nil, id, err == nil, err
}
