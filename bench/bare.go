//go:build linux

package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	"golang.org/x/sys/unix"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
)

// serveBare is the least that a Go server can do with the frames of get and set. A goroutine per
// connection reads the available bytes and answers all whole requests with a single write; each
// reply has the right length and no content. The server keeps no znodes and decodes only headers.
// With synced, replies to sets wait for a sync of a shared log file. serveBare prints its address
// and ends at the end of standard input.
func serveBare(synced bool) {
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))
	defer must.Finally(l.Close)
	var log *bareLog
	if synced {
		// The queue has room for a record of each connection of any shape: appending never blocks.
		log = &bareLog{f: zeroedFile(), queue: make(chan bareRecord, maxLoad)}
		defer must.Finally(removing(log.f))
		// Ends with the process, which waits only for its input.
		go log.run()
	}
	fmt.Println(l.Addr())
	// Ends with the process, as do the connections.
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			// Ends with its connection. Nobody awaits it: the client sees what goes wrong.
			go func() { _ = bareConn(conn, log) }()
		}
	}()
	must.Get(io.Copy(io.Discard, os.Stdin))
}

// bareConn answers until the client closes the connection.
func bareConn(conn net.Conn, log *bareLog) (err error) {
	defer func() { err = errors.Join(err, conn.Close()) }()
	in, w := make([]byte, inputBytes), 0
	var out []byte
	for greeted := false; ; {
		n, err := conn.Read(in[w:])
		if err != nil {
			return err
		}
		w += n
		r, sets := 0, 0
		out = out[:0]
		for w-r >= 4 {
			length := int(binary.BigEndian.Uint32(in[r:]))
			if length > len(in)-4 {
				return errors.New("bare: a frame that is too long")
			}
			if w-r-4 < length {
				break
			}
			frame := in[r+4 : r+4+length]
			r += 4 + length
			start := len(out)
			out = append(out, 0, 0, 0, 0)
			if !greeted {
				greeted = true
				out = (&proto.ConnectResponse{TimeoutMs: sessionTimeoutMs, SessionID: 1, Passwd: make([]byte, proto.PasswdBytes)}).Append(out)
			} else {
				var h proto.RequestHeader
				d := jute.NewDecoder(frame)
				if h.Decode(&d); d.Err() != nil {
					return d.Err()
				}
				out = (&proto.ReplyHeader{Xid: h.Xid, Zxid: 1}).Append(out)
				out = append(out, bareBody[h.Op]...)
				if h.Op == proto.OpSetData {
					sets++
				}
			}
			endFrame(out, start)
		}
		if sets > 0 && log != nil {
			if err := log.append(in[:r]); err != nil {
				return err
			}
		}
		w = copy(in, in[r:w])
		if _, err := conn.Write(out); err != nil {
			return err
		}
	}
}

// bareBody is the part of a reply after its header: data and stat, stat, or nothing. Read-only.
var bareBody = map[proto.OpCode][]byte{
	proto.OpGetData: append(jute.AppendBuffer(nil, payload), make([]byte, proto.StatBytes)...),
	proto.OpSetData: make([]byte, proto.StatBytes),
}

// bareLog appends records of all connections to a file of zeros, and syncs the file. Records that
// arrive during a sync share the next sync.
type bareLog struct {
	f     *os.File
	at    int64
	queue chan bareRecord
}

type bareRecord struct {
	bytes []byte // not changed until done is sent to
	done  chan<- error
}

// append returns when b is on disk.
func (l *bareLog) append(b []byte) error {
	done := make(chan error, 1)
	l.queue <- bareRecord{bytes: b, done: done}
	return <-done
}

func (l *bareLog) run() {
	var batch []byte
	var waiting []chan<- error
	for first := range l.queue {
		batch, waiting = append(batch[:0], first.bytes...), append(waiting[:0], first.done)
		for more := true; more; {
			select {
			case r := <-l.queue:
				batch, waiting = append(batch, r.bytes...), append(waiting, r.done)
			default:
				more = false
			}
		}
		if l.at+int64(len(batch)) > syncFileBytes {
			l.at = 0
		}
		_, err := l.f.WriteAt(batch, l.at)
		l.at += int64(len(batch))
		err = errors.Join(err, unix.Fdatasync(int(l.f.Fd())))
		for _, done := range waiting {
			done <- err
		}
	}
}
