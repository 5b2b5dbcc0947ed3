package client

import (
	"context"
	"io"
	"time"
)

const (
	minSeek = 100 * time.Millisecond
	maxSeek = time.Minute
)

// seekQuorum asks the other servers in turn, with growing pauses between rounds, until one of them
// has a quorum. Then it breaks the link and returns that server.
func (c *Client) seekQuorum(l *link, servers []string) string {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	over := make(chan struct{})
	defer func() { <-over }()
	defer cancel()
	// Stops when the link breaks or the search ends; the deferred receive waits for it.
	go func() {
		defer close(over)
		select {
		case <-l.gone:
			cancel()
		case <-ctx.Done():
		}
	}()
	for pause := minSeek; sleep(ctx, pause) == nil; pause = min(2*pause, maxSeek) {
		for _, address := range servers {
			if address != l.address && c.hasQuorum(ctx, address) {
				l.fail(errBetterServer)
				return address
			}
		}
	}
	return ""
}

// hasQuorum asks a server with the four-letter word isro. A server that cannot be asked has no
// quorum.
func (c *Client) hasQuorum(ctx context.Context, address string) bool {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.ConnectTimeout)
	defer cancel()
	conn, err := c.cfg.Dial(ctx, address)
	if err != nil {
		return false
	}
	interrupt := context.AfterFunc(ctx, func() { _ = conn.Close() }) // the error does not matter
	defer func() { _ = conn.Close() }()
	defer interrupt()
	if _, err := io.WriteString(conn, "isro"); err != nil {
		return false
	}
	var answer [2]byte
	_, err = io.ReadFull(conn, answer[:])
	return err == nil && string(answer[:]) == "rw"
}
