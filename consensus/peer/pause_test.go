package peer

import (
	"testing"
	"time"
)

// P8: a caller that has given up while this process stood still, so that nobody can confirm its
// connection any more, is no impostor. Nor does a pause excuse a caller that is still there, nor a
// caller that is gone for another reason.
func TestP8_CallerDuringAPause(t *testing.T) {
	for name, c := range map[string]struct {
		paused, gone bool
		impostors    int64
	}{
		"paused, and gone": {true, true, 0}, "paused": {true, false, 1}, "gone": {false, true, 1},
	} {
		t.Run(name, func(t *testing.T) {
			everywhere(t, func(t *testing.T, w *world) {
				a := w.start(t, 1)
				hangUp, asked := make(chan func(), 1), make(chan struct{}, 1)
				a.SetPeers(map[uint64]string{2: w.asked(t, func(g greeting) greeting {
					(<-hangUp)()
					asked <- struct{}{}
					return greeting{kind: kindDenied, from: 2, to: g.from}
				})})
				s := w.call(t, a.address)
				hangUp <- func() {
					if c.gone {
						_ = s.Close()
					}
				}
				if c.paused {
					a.standstill.Note(time.Now())
					a.standstill.Note(time.Now().Add(time.Minute))
				}
				hello := greeting{kind: kindFrames, from: 2, to: 1, contents: []byte("stranger")}
				s.say(hello.append(nil))
				<-asked
				if !c.gone {
					s.answer()
				}
				_ = s.Close()
				eventually(t, "the connection ends", func() bool {
					a.Network.mu.RLock()
					defer a.Network.mu.RUnlock()
					return a.accepted == 0
				})
				if n := a.Refused()["impostor"]; n != c.impostors {
					t.Errorf("%d impostors, want %d", n, c.impostors)
				}
			})
		})
	}
}
