package server

import (
	"context"
	"fmt"
	"io"
	"net"
	"time"
)

// wordTimeout bounds an exchange of a four-letter word.
const wordTimeout = 5 * time.Second

// FourLetterWord sends a four-letter word to a client port and returns the whole answer.
func FourLetterWord(ctx context.Context, addr, word string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, wordTimeout)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return "", fmt.Errorf("server: %s: %w", word, err)
	}
	defer func() { _ = conn.Close() }() // the answer is complete, or the error reported
	deadline, _ := ctx.Deadline()
	if err := conn.SetDeadline(deadline); err != nil {
		return "", fmt.Errorf("server: %s: %w", word, err)
	}
	if _, err := io.WriteString(conn, word); err != nil {
		return "", fmt.Errorf("server: %s: %w", word, err)
	}
	answer, err := io.ReadAll(conn)
	if err != nil {
		return "", fmt.Errorf("server: %s: %w", word, err)
	}
	return string(answer), nil
}
