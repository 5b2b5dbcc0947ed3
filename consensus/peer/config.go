package peer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
)

const (
	// DefaultMaxFrame has room for a request of 256 MiB plus its framing.
	DefaultMaxFrame = 300 << 20
	// DefaultQueueBytes is the default limit of the queue of a peer.
	DefaultQueueBytes = 64 << 20
	// MaxHello is the maximum size of the result of Handler.Hello, in bytes.
	MaxHello = maxContents - extensionBytes
	// MinSecret is the minimum size of a secret, in bytes.
	MinSecret = 16

	// silenceTimeout bounds the wait for bytes from the other side, and for a connection.
	silenceTimeout = 5 * time.Second
	// helloTimeout bounds the first wait for the answer to a hello, and for the end of the TLS
	// handshake before it. The next waits are twice as long each, up to silenceTimeout. Without its
	// connection a member is of no use, so a message that was lost, or damaged in a way that makes
	// the other side wait for more of it, must not take as long as a silent peer.
	helloTimeout = 2 * time.Second
	// furtherAfter is after which time without a connection a peer is tried at further addresses.
	furtherAfter = time.Second
	// heartbeatInterval is how often each side sends a heartbeat.
	heartbeatInterval = time.Second
	// partInterval is how often Config.Arriving is called while a frame arrives.
	partInterval = 50 * time.Millisecond
	// maxIncoming is the default of Config.MaxIncoming. Each of at most 255 members has a
	// connection for frames, for a moment two, and some for checkpoints.
	maxIncoming = 1024
	maxReached  = 1024 // see dialer
	// bufferBytes is the maximum of a read or write, unless a frame is larger.
	bufferBytes = 64 << 10
)

// Config configures a network. Self, Listener and Handler are required.
type Config struct {
	// Self is the id of this member. It must not be 0.
	Self uint64
	// Listener accepts the connections of peers. Close closes it.
	Listener net.Listener
	// Peers are the peers before the first SetPeers. Default: none.
	Peers map[uint64]string
	// Dial connects to an address passed to SetPeers. It must return when ctx ends. If nobody
	// listens there, its error must wrap syscall.ECONNREFUSED. Default: TCP. A name is resolved at
	// each dial. If that fails, the address counts at which it was reached last.
	Dial func(ctx context.Context, address string) (net.Conn, error)
	// Handler receives frames, checkpoints and events.
	Handler Handler
	// Secret is known to the members only, at least MinSecret bytes. The hello proves in both
	// directions that the other side knows it. Without a secret, a caller must be confirmed by the
	// member that it says it is, at the address of that member in SetPeers; a member without an
	// address here, or of a version that cannot confirm, is believed. Default: none.
	Secret []byte
	// TLS says which connections are encrypted. SetTLS changes it. Default: none.
	TLS TLS
	// SecretOptional: members without a secret are accepted like by a member without a secret.
	SecretOptional bool
	// MaxIncoming bounds the accepted connections. A quarter of them, at most 256, may belong to
	// unproven callers. At least 8. Default: 1,024.
	MaxIncoming int
	// MaxFrame is the maximum size of a frame, in bytes, up to 1 GiB. All members should use the
	// same value. Default: DefaultMaxFrame.
	MaxFrame int
	// QueueBytes bounds the queue of a peer: a frame is dropped if at least this many bytes wait
	// already. So a single frame may be larger. Default: DefaultQueueBytes.
	QueueBytes int
	// AddressPatience is how long a peer that has several addresses, separated by |, is tried at
	// each of them, except at the last: at most its share of the time for all. Default: 1 s.
	AddressPatience time.Duration
	// Guest returns the address that the hello of a caller names which has no address here, or ""
	// if that caller can be no guest. Like the methods of Handler, it is called from any goroutine.
	// Default: there are no guests.
	Guest func(from uint64, hello []byte) (address string)
	// Arriving is called on the goroutine of Receive while a frame of a peer takes long to arrive,
	// each time after more of it came: the peer is alive. Default: nobody is told.
	Arriving func(from uint64)
	// Logger logs connects and disconnects of peers, and each reason to fail once. Default: none.
	Logger hclog.Logger
}

// Handler handles the events of a network. Its methods are called from the goroutines of the
// network: concurrently for different peers, and, even for the same peer, Hello, Accept and
// ReceiveCheckpoint concurrently with all other methods. Close waits for them.
type Handler interface {
	// Hello returns the description of this member for its peers, at most MaxHello bytes. Hello is
	// called for each connection.
	Hello() []byte
	// Accept decides about the hello of a peer, and may retain the bytes. Both sides of a
	// connection call Accept, after the other side has proved its identity. known is false for a
	// caller that had no address here at that time and is no guest: such a caller has proved
	// nothing. The text of the error is sent to the peer (at most 1,024 bytes), and both sides log
	// it, so the text should be the same at each attempt.
	Accept(from uint64, hello []byte, known bool) error
	// Receive handles a frame, and may retain it. While Receive runs, nothing more is read from
	// this peer, which slows the sender down. Receive should return within 3 s: the peer closes a
	// connection on which nothing is read.
	Receive(from uint64, frame []byte)
	// Drained is called on the goroutine of Receive when Receive has taken all frames that were
	// read. What is said of Receive holds for Drained.
	Drained()
	// ReceiveCheckpoint handles a checkpoint, and may take long. r is valid until ReceiveCheckpoint
	// returns, but for Close, which may be called at any time. r returns io.EOF if the sender
	// succeeded, otherwise io.ErrUnexpectedEOF, also to a Read that waits when r is closed. The
	// sender gets the result: nil, or the text of the error.
	ReceiveCheckpoint(from uint64, r io.ReadCloser) error
	// Up is called after the connection for sending was made. Send works from now on, also in Up.
	Up(peer uint64)
	// Down is called after this connection was lost, or after an attempt to make it failed. refused
	// means that the dial was refused: nobody listens there.
	Down(peer uint64, refused bool)
}

func (c *Config) ensureDefaults() error {
	var errs []error
	if c.Self == 0 || c.Listener == nil || c.Handler == nil {
		errs = append(errs, errors.New("peer: Self, Listener and Handler are required"))
	}
	if len(c.Secret) > 0 && len(c.Secret) < MinSecret {
		errs = append(errs, fmt.Errorf("peer: Secret has %d bytes, it must have at least %d", len(c.Secret), MinSecret))
	}
	if c.Dial == nil {
		c.Dial = (&dialer{reached: make(map[string]string)}).dial
	}
	if c.AddressPatience <= 0 {
		c.AddressPatience = time.Second
	}
	c.MaxIncoming = cmp.Or(c.MaxIncoming, maxIncoming)
	if c.MaxIncoming < 8 {
		errs = append(errs, fmt.Errorf("peer: MaxIncoming is %d, it must be at least 8", c.MaxIncoming))
	}
	c.MaxFrame = cmp.Or(c.MaxFrame, DefaultMaxFrame)
	if c.MaxFrame < 0 || c.MaxFrame > 1<<30 {
		errs = append(errs, fmt.Errorf("peer: MaxFrame is %d, it must be between 1 and %d", c.MaxFrame, 1<<30))
	}
	c.QueueBytes = cmp.Or(c.QueueBytes, DefaultQueueBytes)
	if c.QueueBytes < 0 {
		errs = append(errs, fmt.Errorf("peer: QueueBytes is %d, it must be positive", c.QueueBytes))
	}
	c.Logger = cmp.Or(c.Logger, hclog.NewNullLogger())
	return errors.Join(append(errs, c.TLS.Check())...)
}

// dialer is the default of Config.Dial. While the DNS is down, dialer connects to where a name was
// reached last, as ZooKeeper does (MultipleAddresses.recreateSocketAddresses).
type dialer struct {
	net.Dialer
	mu      sync.Mutex
	reached map[string]string // by address; at most maxReached, as strangers may name addresses
}

func (d *dialer) dial(ctx context.Context, address string) (net.Conn, error) {
	d.mu.Lock()
	to := d.reached[address]
	d.mu.Unlock()
	if to != "" {
		end, _ := ctx.Deadline() // set by with and ask; a DNS that is silent takes no more than half
		within, cancel := context.WithTimeout(ctx, time.Until(end)/2)
		_, err := d.Resolver.LookupHost(within, hostOfAddress(address))
		if cancel(); err == nil {
			to = address
		}
	}
	conn, err := d.DialContext(ctx, "tcp", cmp.Or(to, address))
	if err == nil {
		d.mu.Lock()
		defer d.mu.Unlock()
		if len(d.reached) >= maxReached {
			clear(d.reached)
		}
		d.reached[address] = conn.RemoteAddr().String()
	}
	return conn, err
}
