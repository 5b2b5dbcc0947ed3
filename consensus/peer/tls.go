package peer

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"
)

// TLSMode is server.PeerTLSMode.
type TLSMode int

// The modes.
const (
	TLSOff      TLSMode = iota // plain connections only
	TLSAccepted                // plain connections are made, both kinds are accepted
	TLSDialed                  // TLS connections are made, both kinds are accepted
	TLSRequired                // TLS connections only
)

// String describes the mode.
func (m TLSMode) String() string {
	names := []string{"plain only", "dials plain, accepts both", "dials with TLS, accepts both", "TLS only"}
	if m < TLSOff || m > TLSRequired {
		return fmt.Sprintf("TLSMode(%d)", int(m))
	}
	return names[m]
}

func (m TLSMode) dials() bool { return m >= TLSDialed }

// TLS is server.PeerTLS, which documents the fields.
type TLS struct {
	Mode                               TLSMode
	Server                             *tls.Config
	Client                             func(host string) *tls.Config
	AnyHost, AnyCallerHost, ReverseDNS bool
	Ensemble                           string
	DetectionTimeout                   time.Duration
}

// Check returns an error if the configuration is incomplete.
func (t *TLS) Check() error {
	var errs []error
	if t.Mode < TLSOff || t.Mode > TLSRequired {
		errs = append(errs, fmt.Errorf("peer: TLS.Mode is %d, it must be between %d and %d", t.Mode, TLSOff, TLSRequired))
	}
	if t.Mode != TLSOff && (t.Server == nil || t.Client == nil) {
		errs = append(errs, errors.New("peer: TLS.Server and TLS.Client are required unless TLS.Mode is TLSOff"))
	}
	if t.DetectionTimeout < 0 {
		errs = append(errs, fmt.Errorf("peer: TLS.DetectionTimeout is %v, it must not be negative", t.DetectionTimeout))
	}
	return errors.Join(errs...)
}

type encryption struct {
	TLS
	// plain lasts as long as plain connections are allowed.
	plain    context.Context
	endPlain context.CancelFunc
}

// errChanged ends connections that are made again because they are outdated.
var errChanged = errors.New("peer: the connection is made again, because the address of the peer, or the configuration of TLS between members, has changed")

// setEncryption makes t the configuration of new connections. The caller must hold n.mu.
func (n *Network) setEncryption(t TLS) {
	next := &encryption{TLS: t}
	if old := n.encryption.Load(); old != nil && old.Mode != TLSRequired {
		next.plain, next.endPlain = old.plain, old.endPlain
	} else {
		next.plain, next.endPlain = context.WithCancel(context.Background())
	}
	if t.DetectionTimeout == 0 || t.DetectionTimeout > silenceTimeout {
		next.DetectionTimeout = silenceTimeout
	}
	n.encryption.Store(next)
	if t.Mode == TLSRequired {
		next.endPlain()
	}
}

// SetTLS changes the configuration of TLS. New connections follow it at once. Existing connections
// stay, except:
//   - If the new mode makes connections of the other kind, the connections for sending frames are
//     made again, one at a time, each only after the peer has accepted a trial connection of the
//     new kind. So a change that a peer can't follow yet interrupts nothing.
//   - TLSRequired ends the plain connections that are left.
//
// An error means that nothing has changed. SetTLS does not block.
func (n *Network) SetTLS(t TLS) error {
	if err := t.Check(); err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return nil
	}
	n.setEncryption(t)
	n.signalLinks()
	return nil
}

// linkTLS returns the version of TLS of a connection, or "" for a plain connection.
func linkTLS(conn net.Conn) string {
	if s, ok := conn.(*secureConn); ok {
		return tls.VersionName(s.ConnectionState().Version)
	}
	return ""
}

// addressSeparator stands between the addresses of a peer that has several.
const addressSeparator = "|"

// dial connects to a member at one of its addresses, in turn. patience bounds each TLS handshake.
// If all refuse the connection, the error says so.
func (n *Network) dial(ctx context.Context, to uint64, addresses string, patience time.Duration) (conn net.Conn, enc *encryption, err error) {
	for address, rest, more := "", addresses, true; more; {
		address, rest, more = strings.Cut(rest, addressSeparator)
		within, cancel := ctx, context.CancelFunc(func() {})
		if more {
			share := n.cfg.AddressPatience
			if end, bounded := ctx.Deadline(); bounded { // the addresses after it have their shares of the time
				share = min(share, time.Until(end)/time.Duration(2+strings.Count(rest, addressSeparator)))
			}
			within, cancel = context.WithTimeout(ctx, share)
		}
		c, e, failed := n.dialAddress(within, to, address, patience)
		cancel()
		if failed == nil {
			return c, e, nil
		}
		if err == nil || connectionRefused(err) {
			err = failed
		}
	}
	return nil, nil, err
}

// dialAddress connects to a member, with TLS and the member's certificate if the mode says so.
func (n *Network) dialAddress(ctx context.Context, to uint64, address string, patience time.Duration) (net.Conn, *encryption, error) {
	enc := n.encryption.Load()
	conn, err := n.cfg.Dial(ctx, address)
	if err != nil || !enc.Mode.dials() {
		return conn, enc, err
	}
	s, err := enc.handshakeAsCaller(ctx, conn, to, address, patience)
	if err == nil {
		_, err = n.checkCertificate(ctx, enc, s, to, address, !enc.AnyHost)
	}
	if err != nil {
		_ = conn.Close() // the handshake or the certificate is the reason, nothing else matters
		return nil, nil, err
	}
	return s, enc, nil
}

// handshakeAsCaller makes the handshake of a dialed connection. A handshake that is not over after
// patience is made again on a new connection, like a hello.
func (e *encryption) handshakeAsCaller(ctx context.Context, conn net.Conn, to uint64, address string, patience time.Duration) (*secureConn, error) {
	within, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	s := &secureConn{tls.Client(conn, e.Client(hostOfAddress(address))), conn}
	err := s.HandshakeContext(within)
	switch {
	case err != nil && within.Err() != nil && ctx.Err() == nil:
		return nil, fmt.Errorf("peer: TLS handshake: %w", errUnanswered)
	case err != nil:
		return nil, handshakeError(err, to)
	}
	return s, nil
}

func hostOfAddress(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return address // a name of a test
	}
	return host
}

// secureConn is a connection with TLS. It is no syscall.Conn, so frames are written only by the
// goroutine of the peer.
type secureConn struct {
	*tls.Conn
	raw net.Conn
}

// Close closes the connection at once. tls.Conn.Close would first try to send an alert, and wait
// for a peer that reads nothing. The alert is not needed: each message says where it ends.
func (s *secureConn) Close() error { return s.raw.Close() }

func (s *secureConn) SetLinger(seconds int) error {
	if c, ok := s.raw.(interface{ SetLinger(seconds int) error }); ok {
		return c.SetLinger(seconds)
	}
	return nil
}

// binding returns bytes that only the two ends of this connection have, or nil if it is plain.
// Proofs that contain them are valid on this connection only, so nobody can relay them.
func binding(conn net.Conn) ([]byte, error) {
	s, ok := conn.(*secureConn)
	if !ok {
		return nil, nil
	}
	state := s.ConnectionState()
	b, err := state.ExportKeyingMaterial("EXPORTER-gozkd-members-1", nil, 32)
	if err != nil {
		return nil, fmt.Errorf("peer: bind the proof of the ensemble secret to the TLS connection: %w", err)
	}
	return b, nil
}
