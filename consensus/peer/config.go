package peer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/hashicorp/go-hclog"
)

const (
	// DefaultMaxFrame has room for a request of 256 MiB and what is written around it.
	DefaultMaxFrame = 300 << 20
	// DefaultQueueBytes is how much may wait for one peer.
	DefaultQueueBytes = 64 << 20
	// MaxHello bounds what Handler.Hello returns, in bytes.
	MaxHello = 64 << 10

	// stall is how long a side waits for the other to say anything, or for a connection to be made.
	stall = 5 * time.Second
	// beat is how often each side says something when it has nothing to say.
	beat = time.Second
	// maxIncoming bounds accepted connections. Each of the at most 254 members has one, for a moment two, and checkpoints.
	maxIncoming = 1024
	// bufferBytes is what one system call reads or writes at most, unless a frame is larger.
	bufferBytes = 64 << 10
)

// Config says how a network works. Self, Listener and Handler are required.
type Config struct {
	// Self is this member's id, not 0.
	Self uint64
	// Listener accepts the peers' connections. Close closes it.
	Listener net.Listener
	// Dial makes a connection to an address given to SetPeers. It must end when ctx does, and an error that wraps
	// syscall.ECONNREFUSED says that nobody listens there. Default: net.Dialer, which resolves names at each dial.
	Dial func(ctx context.Context, address string) (net.Conn, error)
	// Handler gets what arrives.
	Handler Handler
	// MaxFrame bounds a frame, in bytes, up to 1 GiB; all members should agree on it. Default: DefaultMaxFrame.
	MaxFrame int
	// QueueBytes bounds what waits to be written to one peer: a frame is dropped when so much waits already. So
	// a single frame may be larger. Default: DefaultQueueBytes.
	QueueBytes int
	// Logger gets a line when a peer comes or goes, and one per reason why it can't. Default: none.
	Logger hclog.Logger
}

// Handler is what a member does with its peers. The methods are called from the network's goroutines: concurrently for
// different peers, and for one peer Hello, Accept and ReceiveCheckpoint concurrently with everything else. Close awaits them.
type Handler interface {
	// Hello returns what this member says of itself, at most MaxHello bytes. It is called for each connection.
	Hello() []byte
	// Accept judges the hello of a peer, which then belongs to the callee. Both sides of a connection do. The text of
	// the error is the reason that the peer is told (its first 1,024 bytes) and that both log, so it should be the same at each try.
	Accept(from uint64, hello []byte) error
	// Receive takes a frame, which then belongs to the callee. While it runs nothing more is read from this peer: that is how
	// a member slows down who sends to it. It should return within 3 s, for the peer gives a connection up on which nothing is taken.
	Receive(from uint64, frame []byte)
	// ReceiveCheckpoint takes a checkpoint. r is valid until it returns, and gives io.EOF only when the sender ended well,
	// else io.ErrUnexpectedEOF. The sender is told the result: nil, or the text of the error. It may take its time.
	ReceiveCheckpoint(from uint64, r io.Reader) error
	// Up says that the connection on which frames are sent is there. Send works from now on, also within Up.
	Up(peer uint64)
	// Down says that it is lost, or that one more try to make it failed. gone: the dial was refused, nobody listens there.
	Down(peer uint64, gone bool)
}

func (c *Config) ensureDefaults() error {
	var errs []error
	if c.Self == 0 {
		errs = append(errs, errors.New("peer: Self is required"))
	}
	if c.Listener == nil {
		errs = append(errs, errors.New("peer: Listener is required"))
	}
	if c.Handler == nil {
		errs = append(errs, errors.New("peer: Handler is required"))
	}
	if c.Dial == nil {
		c.Dial = func(ctx context.Context, address string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", address)
		}
	}
	if c.MaxFrame == 0 {
		c.MaxFrame = DefaultMaxFrame
	}
	if c.MaxFrame < 0 || c.MaxFrame > 1<<30 {
		errs = append(errs, fmt.Errorf("peer: MaxFrame is %d, allowed are 1 to %d", c.MaxFrame, 1<<30))
	}
	if c.QueueBytes == 0 {
		c.QueueBytes = DefaultQueueBytes
	}
	if c.QueueBytes < 0 {
		errs = append(errs, fmt.Errorf("peer: QueueBytes is %d, it must be positive", c.QueueBytes))
	}
	if c.Logger == nil {
		c.Logger = hclog.NewNullLogger()
	}
	return errors.Join(errs...)
}
