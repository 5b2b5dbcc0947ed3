package peer

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// outcome is the result of reading a checkpoint.
type outcome struct {
	bytes []byte
	err   error // of io.ReadAll: nil for io.EOF
}

// reading makes a member read checkpoints to their end and report the outcome.
func reading(seen chan outcome) func(m *member, _ *Config) {
	return func(m *member, _ *Config) {
		m.checkpoint = func(_ uint64, r io.Reader) error {
			b, err := io.ReadAll(r)
			seen <- outcome{b, err}
			return err
		}
	}
}

// P4: all bytes arrive, then io.EOF, while frames continue.
func TestP4_Arrives(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		for _, n := range []int{0, 1, bufferBytes, 4<<20 + 1} {
			seen := make(chan outcome, 1)
			a, b := w.start(t, 1), w.start(t, 2, reading(seen))
			know(a, b)
			want := bytes.Repeat([]byte("0123456789abcdef"), n/16+1)[:n]
			err := a.SendCheckpoint(t.Context(), 2, func(w io.Writer) error {
				a.Send(2, []byte("meanwhile"))
				b.expect("1: meanwhile")
				_, err := w.Write(want[:n/3])
				for _, c := range want[n/3 : n/2] {
					if _, err := w.Write([]byte{c}); err != nil {
						return err
					}
				}
				return errors.Join(err, second(w.Write(want[n/2:])))
			})
			if got := <-seen; err != nil || got.err != nil || !bytes.Equal(got.bytes, want) {
				t.Fatalf("%d of %d bytes arrived, errors %v and %v", len(got.bytes), n, err, got.err)
			}
		}
	})
}

func second(_ int, err error) error { return err }

// P4: a sender that fails half-way does not end the stream successfully.
func TestP4_WriteFails(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		seen := make(chan outcome, 1)
		a, b := w.start(t, 1), w.start(t, 2, reading(seen))
		know(a, b)
		broken := errors.New("the disk is gone")
		err := a.SendCheckpoint(t.Context(), 2, func(w io.Writer) error {
			if _, err := w.Write(make([]byte, 3<<20)); err != nil {
				t.Error(err)
			}
			return broken
		})
		if !errors.Is(err, broken) {
			t.Errorf("SendCheckpoint: %v", err)
		}
		if got := <-seen; !errors.Is(got.err, io.ErrUnexpectedEOF) {
			t.Errorf("after %d bytes the reader returns %v", len(got.bytes), got.err)
		}
	})
}

// P4: after any kind of broken connection the stream ends with an error, and the bytes before it
// are those that were sent.
func TestP4_Broken(t *testing.T) {
	data := appendFrame(nil, typeData, []byte("half"))
	end := func(n uint64) []byte { return appendFrame(nil, typeEnd, binary.LittleEndian.AppendUint64(nil, n)) }
	damaged := bytes.Clone(data)
	damaged[frameHeaderBytes] ^= 1
	for _, c := range []struct {
		name  string
		bytes []byte
		word  bool // the sender is told
	}{
		{"closed", nil, false},
		{"closed in a head", data[:7], false},
		{"closed in a frame", data[:frameHeaderBytes+2], false},
		{"damaged", damaged, true},
		{"too little came", end(5), true},
		{"too much came", end(3), true},
		{"an end of no length", appendFrame(nil, typeEnd, nil), true},
		{"a verdict", appendFrame(nil, typeDone, nil), true},
		{"given up", failureFrame("no more"), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			everywhere(t, func(t *testing.T, w *world) {
				seen := make(chan outcome, 1)
				a := w.start(t, 1, reading(seen))
				s := w.call(t, a.address)
				s.exchangeGreetings(kindCheckpoint, 2, 1)
				s.say(append(bytes.Clone(data), c.bytes...))
				if !c.word {
					_ = s.Close()
				}
				if got := <-seen; string(got.bytes) != "half" || !errors.Is(got.err, io.ErrUnexpectedEOF) {
					t.Errorf("the reader returns %q and %v", got.bytes, got.err)
				}
				if !c.word {
					return
				}
				if typ, word, err := s.next(); err != nil || typ != typeFailed || !strings.Contains(word, "the stream broke after 4 bytes") {
					t.Errorf("last message is %d %q, %v", typ, word, err)
				}
			})
		})
	}
}

// P4: a sender that vanishes is noticed.
func TestP4_SenderFallsSilent(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		seen := make(chan outcome, 1)
		a := w.start(t, 1, reading(seen))
		s := w.call(t, a.address)
		s.exchangeGreetings(kindCheckpoint, 2, 1)
		s.say(appendFrame(nil, typeData, []byte("half")))
		go func() { _, _, _ = s.next() }() // a pipe needs someone to take the beats
		began := time.Now()
		if got := <-seen; !errors.Is(got.err, io.ErrUnexpectedEOF) || time.Since(began) != silenceTimeout {
			t.Errorf("after %v the reader returns %v", time.Since(began), got.err)
		}
	})
}

// P4: a receiver that vanishes is noticed, before and after the end of the stream.
func TestP4_ReceiverFallsSilent(t *testing.T) {
	for name, length := range map[string]int{"in the middle": 1 << 20, "at the end": 1} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				address, calls := w.receptionist(t)
				a := w.start(t, 1)
				a.SetPeers(map[uint64]string{2: address})
				go func() {
					for s := range calls {
						if s.accepted().kind == kindCheckpoint {
							if length == 1 {
								_, _ = io.CopyN(io.Discard, s, frameHeaderBytes+1+frameHeaderBytes+8)
							}
							return
						}
						_ = s.Close()
					}
				}()
				a.await(2, "up")
				began := time.Now()
				err := a.SendCheckpoint(t.Context(), 2, func(w io.Writer) error { return second(w.Write(make([]byte, length))) })
				if took := time.Since(began); !errors.Is(err, ErrSilent) || took != silenceTimeout {
					t.Errorf("after %v: %v", took, err)
				}
			})
		})
	}
}

// P4, P5: both sides may be slow.
func TestP4_Slow(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.start(t, 1)
		b := w.start(t, 2, func(m *member, _ *Config) {
			m.checkpoint = func(_ uint64, r io.Reader) error {
				time.Sleep(time.Minute)
				if b, err := io.ReadAll(r); err != nil || len(b) != 2<<20 {
					t.Errorf("%d bytes, %v", len(b), err)
				}
				time.Sleep(time.Minute)
				return nil
			}
		})
		know(a, b)
		err := a.SendCheckpoint(t.Context(), 2, func(w io.Writer) error {
			_, err := w.Write(make([]byte, 1<<20))
			time.Sleep(time.Hour)
			return errors.Join(err, second(w.Write(make([]byte, 1<<20))))
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

// P4: a receiver can refuse a checkpoint without reading to the end.
func TestP4_Refused(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		a := w.start(t, 1)
		b := w.start(t, 2, func(m *member, _ *Config) {
			m.checkpoint = func(_ uint64, r io.Reader) error {
				_, err := io.ReadFull(r, make([]byte, 10))
				return errors.Join(err, errors.New("one is under way"))
			}
		})
		know(a, b)
		var refused *RefusedError
		err := a.SendCheckpoint(t.Context(), 2, func(w io.Writer) error {
			for {
				if _, err := w.Write(make([]byte, 1<<20)); err != nil {
					return err
				}
			}
		})
		if !errors.As(err, &refused) || refused.Peer != 2 || !strings.Contains(refused.Reason, "one is under way") {
			t.Errorf("SendCheckpoint: %v", err)
		}
	})
}

// P4: a receiver can give up a checkpoint whose sender stands still.
func TestP4_ReaderCloses(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		ended := make(chan struct{})
		a := w.start(t, 1)
		b := w.start(t, 2, func(m *member, _ *Config) {
			m.checkpoint = func(_ uint64, r io.Reader) error {
				defer close(ended)
				_, err := io.ReadFull(r, make([]byte, 10))
				closed := make(chan error)
				go func() { closed <- r.(io.Closer).Close() }()
				if _, readErr := io.Copy(io.Discard, r); !errors.Is(readErr, io.ErrUnexpectedEOF) {
					t.Errorf("the closed reader returns %v", readErr)
				}
				return errors.Join(err, <-closed, errors.New("given up"))
			}
		})
		know(a, b)
		err := a.SendCheckpoint(t.Context(), 2, func(w io.Writer) error {
			_, err := w.Write(make([]byte, 1<<20))
			select {
			case <-ended:
			case <-b.late():
				t.Error("the reader waits for the sender although it was closed")
			}
			return err
		})
		if err == nil {
			t.Error("a checkpoint that was given up has arrived")
		}
	})
}

func TestSendCheckpoint_Ends(t *testing.T) {
	never := func(t *testing.T) func(m *member, _ *Config) {
		return func(m *member, _ *Config) {
			m.checkpoint = func(_ uint64, r io.Reader) error {
				if _, err := io.Copy(io.Discard, r); !errors.Is(err, io.ErrUnexpectedEOF) {
					t.Errorf("the reader returns %v", err)
				}
				return errors.New("whatever")
			}
		}
	}
	gone := errors.New("no longer wanted")
	for name, c := range map[string]struct {
		end  func(a, b *member, cancel context.CancelCauseFunc)
		want error
	}{
		"ctx":            {func(_, _ *member, cancel context.CancelCauseFunc) { cancel(gone) }, gone},
		"own close":      {func(a, _ *member, _ context.CancelCauseFunc) { go func() { _ = a.Close() }() }, ErrClosed},
		"dropped":        {func(a, _ *member, _ context.CancelCauseFunc) { a.SetPeers(nil) }, ErrMoved},
		"receiver close": {func(_, b *member, _ context.CancelCauseFunc) { go func() { _ = b.Close() }() }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			everywhere(t, func(t *testing.T, w *world) {
				a, b := w.start(t, 1), w.start(t, 2, never(t))
				know(a, b)
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				ended := false
				err := a.SendCheckpoint(ctx, 2, func(w io.Writer) error {
					for {
						if _, err := w.Write(make([]byte, 1<<20)); err != nil {
							return err
						}
						if !ended {
							c.end(a, b, cancel)
							ended = true
						}
					}
				})
				if err == nil || !errors.Is(err, c.want) && c.want != nil {
					t.Errorf("SendCheckpoint: %v, want %v", err, c.want)
				}
			})
		})
	}
}

func TestSendCheckpoint_NotStarted(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b := w.start(t, 1), w.start(t, 2)
		write := func(io.Writer) error { t.Error("write was called"); return nil }
		if err := a.SendCheckpoint(t.Context(), 2, write); !errors.Is(err, ErrUnknownPeer) {
			t.Errorf("to an unknown peer: %v", err)
		}
		a.SetPeers(map[uint64]string{2: "nowhere", 3: b.address})
		if err := a.SendCheckpoint(t.Context(), 2, write); !connectionRefused(err) {
			t.Errorf("to a removed peer: %v", err)
		}
		var refused *RefusedError
		if err := a.SendCheckpoint(t.Context(), 3, write); !errors.As(err, &refused) {
			t.Errorf("to another: %v", err)
		}
		synctest.Wait()
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
		if err := a.SendCheckpoint(t.Context(), 2, write); !errors.Is(err, ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
	})
}
