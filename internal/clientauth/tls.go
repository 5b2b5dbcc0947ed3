package clientauth

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"

	"github.com/gozkd/gozkd/internal/neterr"
)

// ErrNotTLS means that the port does not seem to speak TLS: the server closed the connection during
// the handshake, or sent other bytes.
var ErrNotTLS = errors.New("this port does not seem to speak TLS")

// TLS performs the handshake with the server at address on conn. If cfg has no ServerName, the
// certificate must be for the host of the address. After an error conn is closed.
func TLS(ctx context.Context, conn net.Conn, cfg *tls.Config, address string) (net.Conn, error) {
	if cfg.ServerName == "" {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return nil, errors.Join(err, conn.Close())
		}
		cfg = cfg.Clone()
		cfg.ServerName = host
	}
	c := &tlsConn{Conn: tls.Client(conn, cfg), raw: conn}
	if err := c.HandshakeContext(ctx); err != nil {
		_ = conn.Close() // the reason is in err
		return nil, fmt.Errorf("TLS handshake: %w", explain(err))
	}
	return c, nil
}

func explain(err error) error {
	switch {
	case errors.As(err, new(tls.RecordHeaderError)):
		return ErrNotTLS
	case errors.Is(err, io.EOF), neterr.Is(err, syscall.ECONNRESET): // a reset: the server had read only a part of the hello
		return fmt.Errorf("the server closed the connection: %w", ErrNotTLS)
	}
	return err
}

// Reason returns the reason why the first write on a connection failed with err: the server's
// alert, if the server refused the client's certificate after the handshake, otherwise err.
func Reason(conn io.Reader, err error) error {
	_, alert := conn.Read(make([]byte, 1))
	if op := (*net.OpError)(nil); errors.As(alert, &op) && op.Op == "remote error" {
		return alert
	}
	return err
}

// farewell bounds how long Close waits for the alert that announces the end.
const farewell = 100 * time.Millisecond

// tlsConn is a tls.Conn whose Close takes bounded time even if the server no longer reads. Close of
// a tls.Conn may take seconds.
type tlsConn struct {
	*tls.Conn
	raw net.Conn
}

func (c *tlsConn) Close() error {
	t := time.AfterFunc(farewell, func() { _ = c.raw.Close() }) // ends the write of the alert
	defer t.Stop()
	return c.Conn.Close()
}
