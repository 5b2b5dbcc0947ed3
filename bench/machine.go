//go:build linux

package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/proto"
)

const (
	syncFileBytes   = 64 << 20
	syncRecordBytes = 256 // about the log record of a 100-byte set
)

// syncsOf returns a function that appends a record and syncs; after size bytes it starts again at
// the beginning.
func syncsOf(f *os.File, size int64) func() error {
	record, at := make([]byte, syncRecordBytes), int64(0)
	for i := range record {
		record[i] = byte(i)
	}
	return func() error {
		_, err := f.WriteAt(record, at)
		at = (at + syncRecordBytes) % size
		return errors.Join(err, unix.Fdatasync(int(f.Fd())))
	}
}

// zeroedFile returns a new temporary file of syncFileBytes zeros, synced. The caller closes and
// removes it.
func zeroedFile() *os.File {
	f := must.Get(os.CreateTemp("", "gozkd-bench-sync-"))
	_, err := io.CopyN(f, zeros{}, syncFileBytes)
	if err = errors.Join(err, f.Sync()); err != nil {
		must.Do(errors.Join(err, removing(f)()))
	}
	return f
}

// removing returns a function that closes and removes a file.
func removing(f *os.File) func() error {
	return func() error { return errors.Join(f.Close(), os.Remove(f.Name())) }
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

// loopbackRound returns a function that sends a set's bytes to another process and waits until they
// are back. done ends that process.
func loopbackRound() (name string, round, done func() error) {
	echo := startSelf("echo")
	fd, err := connect(echo.addr, ioTimeout, 0)
	if err != nil {
		must.Do(errors.Join(err, echo.stop()))
	}
	c := &client{fd: fd}
	c.request(proto.OpSetData, setRequest(&client{random: 1}).Append)
	message := c.out
	c.in = make([]byte, inputBytes)
	round = func() error {
		c.out = append(c.out[:0], message...)
		if err := c.writeAll(); err != nil {
			return err
		}
		_, err := c.readFrame()
		return err
	}
	return fmt.Sprintf("loopback: %d B and back", len(message)), round, func() error { return errors.Join(unix.Close(fd), echo.stop()) }
}

// self is another process of this program, a server that prints its address and ends with its
// standard input.
type self struct {
	addr string
	pid  int
	stop func() error
}

func startSelf(command string) *self {
	cmd := exec.Command(must.Get(os.Executable()), command)
	cmd.Stderr = os.Stderr
	in, out := must.Get(cmd.StdinPipe()), must.Get(cmd.StdoutPipe())
	must.Do(cmd.Start())
	stop := func() error { return errors.Join(in.Close(), cmd.Wait()) }
	line := make([]byte, 64)
	n, err := out.Read(line)
	if err != nil {
		must.Do(errors.Join(err, stop()))
	}
	return &self{addr: strings.TrimSpace(string(line[:n])), pid: cmd.Process.Pid, stop: stop}
}

// serveEcho prints its address and echoes the bytes of the first connection in the plainest way. It
// ends at the end of standard input.
func serveEcho() {
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))
	defer must.Finally(l.Close)
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
	must.Get(io.Copy(io.Discard, os.Stdin))
}
