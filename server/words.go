package server

import (
	"encoding/binary"
	"time"

	"github.com/gozkd/gozkd/internal/fourletter"
)

// defaultTraceMask is the answer of gtmk until stmk sets another mask. The mask has no other
// effect.
const defaultTraceMask = 306

// answerWord answers a four-letter word. The caller closes the connection. in holds the word and
// the bytes after it.
func (c *conn) answerWord(word string, in *input) {
	if word == fourletter.TelnetClose {
		return
	}
	s := c.server
	c.mu.Lock()
	c.stats.Received++
	c.mu.Unlock()
	s.meter.Traffic.Received.Add(1)
	allowed := fourletter.Allowed(s.live.Load().Words, word)
	if word == "stmk" && allowed {
		for in.w-in.r < 12 { // bounded by the handshake's deadline, as the word itself was
			if in.fill(c) != nil {
				return
			}
		}
		s.SetTraceMask(int64(binary.BigEndian.Uint64(in.buf[in.r+4:])))
	}
	// A client that does not read must not keep the answer in memory for longer than a handshake
	// may take.
	if c.nc.SetWriteDeadline(time.Now().Add(s.live.Load().HandshakeTimeout)) != nil {
		return // closed already
	}
	w := fourletter.NewWriter(c.nc)
	if allowed {
		fourletter.Write(w, word, s, int64(c.id))
	} else {
		fourletter.Refuse(w, word)
	}
	if err := w.Flush(); err != nil {
		c.logger().Debug("four-letter word not answered", "word", word, "error", err)
		return
	}
	s.meter.Traffic.Sent.Add(1)
}
