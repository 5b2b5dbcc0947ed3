//go:build linux

package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
)

// serveEcho prints its address and echoes the bytes of the first connection in the plainest way. It
// ends at the end of standard input.
func serveEcho() error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(l.Addr())
	// Ends with the process, which waits only for its input.
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		b := make([]byte, 4096)
		for {
			n, err := conn.Read(b)
			if err == nil {
				_, err = conn.Write(b[:n])
			}
			if err != nil {
				return
			}
		}
	}()
	_, err = io.Copy(io.Discard, os.Stdin)
	return errors.Join(err, l.Close())
}
