package consensus

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Requests that Validate refuses, own and forwarded ones, keep their place in their stream, and are
// applied on all members without their payload.
func TestC2_RefusedRequestsKeepTheirPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubbled(t, time.Millisecond, 10*time.Millisecond, func(_ int, cfg *Config) {
			cfg.Validate = func(payload []byte) error {
				if strings.HasPrefix(string(payload), "bad") {
					return errors.New("bad")
				}
				return nil
			}
		})
		defer b.stop()
		b.leader()
		const each = 30
		answers := make(chan string, 3*each)
		for i := range each {
			for id, n := range b.members {
				payload := fmt.Sprintf("%s %d/%02d", []string{"good", "bad"}[i%2], id, i)
				n.Propose([]byte(payload), func() { answers <- payload })
			}
		}
		var answered [3][]string
		for range 3 * each {
			answer := <-answers
			id := answer[strings.Index(answer, " ")+1] - '0'
			answered[id] = append(answered[id], answer[strings.Index(answer, " ")+1:])
		}
		time.Sleep(time.Second)
		var want []string
		for i, l := range b.lists {
			got := l.all()
			if want == nil {
				want = got
			}
			if !slices.Equal(got, want) {
				t.Errorf("member %d applied %q, member 1 %q", i+1, got, want)
			}
			if !slices.IsSorted(answered[i]) {
				t.Errorf("member %d answered in the order %q", i+1, answered[i])
			}
		}
		empty := 0
		for _, item := range want {
			switch {
			case item == "":
				empty++
			case strings.HasPrefix(item, "bad"):
				t.Errorf("%q is applied", item)
			}
		}
		if empty != 3*each/2 || len(want) != 3*each {
			t.Errorf("%d requests applied, %d refused", len(want), empty)
		}
	})
}
