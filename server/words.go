package server

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"time"

	"github.com/gozkd/gozkd/internal/fourletter"
	"github.com/gozkd/gozkd/server/internal/meter"
)

// defaultTraceMask is the answer of gtmk until stmk sets another mask. It has no other effect.
const defaultTraceMask = 306

const (
	// shortWords and longWords are how many four-letter words are rendered at once, of those whose
	// answers are bounded and of those whose answers grow with the number of clients or znodes.
	// Others wait, for as long as a handshake may take.
	shortWords, longWords = 8, 4
	// partPatience is how long a client may take to read each part of a long answer. Meanwhile
	// other long answers wait.
	partPatience = 2 * time.Second
)

var errWordsBusy = errors.New("too many four-letter words at once, or the server stops")

// wordGate bounds the four-letter words that are rendered at once. A word takes a buffer from the
// channel of its kind, and puts it back; nil stands for a buffer that is still to be made.
type wordGate struct{ short, long chan *bufio.Writer }

func (g *wordGate) init() {
	g.short, g.long = make(chan *bufio.Writer, shortWords), make(chan *bufio.Writer, longWords)
	for range shortWords {
		g.short <- nil
	}
	for range longWords {
		g.long <- nil
	}
}

// take returns a buffer for a word, or false if there is none until the patience ends or stopping
// is closed. The caller must call back when it no longer needs the buffer.
func (g *wordGate) take(long bool, patience time.Duration, stopping <-chan struct{}) (w *bufio.Writer, back func(), ok bool) {
	kind := g.short
	if long {
		kind = g.long
	}
	select {
	case w = <-kind:
	case <-stopping:
		return nil, nil, false
	case <-time.After(patience):
		return nil, nil, false
	}
	if w == nil {
		w = fourletter.NewWriter(nil)
	}
	return w, func() { w.Reset(nil); kind <- w }, true
}

// answerWord answers a four-letter word, which the input holds with the bytes after it. The caller
// closes the connection.
func (c newcomer) answerWord(word string) {
	if word == fourletter.TelnetClose {
		return
	}
	s, now := c.server, c.server.cfg.Now()
	s.meter.Count(meter.PacketsReceived)
	live := s.live.Load()
	allowed := fourletter.Allowed(live.Words, word)
	c.Lock()
	c.stats.Received++
	s.trail.Word(c.conn, word, allowed, now)
	c.Unlock()
	if word == "stmk" && allowed {
		for c.in.Len() < 12 { // bounded by the handshake's deadline, as the word itself was
			if c.in.Fill(&c.Link) != nil {
				return
			}
		}
		s.facts.SetTraceMask(int64(binary.BigEndian.Uint64(c.in.Bytes()[4:])))
	}
	if err := c.sendWord(word, allowed, live.HandshakeTimeout); err != nil {
		c.logger().Debug("four-letter word not answered", "word", word, "error", err)
		return
	}
	s.meter.Count(meter.PacketsSent)
}

// sendWord renders and sends an answer. A client that does not read must not keep the answer in
// memory for longer than a handshake may take, nor keep others from being answered: a short answer
// is sent after its buffer is free again, a long one must be read without pause.
func (c newcomer) sendWord(word string, allowed bool, patience time.Duration) error {
	s, end := c.server, time.Now().Add(patience)
	long := allowed && fourletter.IsLong(word)
	w, back, ok := s.strangers.words.take(long, patience, s.life.Stopping())
	if !ok {
		return errWordsBusy
	}
	if long {
		defer back()
		w.Reset(&partWriter{c: c.conn, end: end})
		fourletter.Write(w, word, s.facts, int64(c.id))
		return w.Flush()
	}
	var answer bytes.Buffer
	w.Reset(&answer)
	if allowed {
		fourletter.Write(w, word, s.facts, int64(c.id))
	} else {
		fourletter.Refuse(w, word)
	}
	err := w.Flush()
	back()
	if err == nil {
		err = c.NetConn().SetWriteDeadline(end)
	}
	if err == nil {
		_, err = c.WriteAll(answer.Bytes())
	}
	return err
}

// partWriter sends the parts of a long answer. Each may take partPatience, and all until the end.
type partWriter struct {
	c   *conn
	end time.Time
}

func (p *partWriter) Write(part []byte) (int, error) {
	deadline := time.Now().Add(partPatience)
	if deadline.After(p.end) {
		deadline = p.end
	}
	if err := p.c.NetConn().SetWriteDeadline(deadline); err != nil {
		return 0, err
	}
	return p.c.WriteAll(part)
}
