package client_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
	"github.com/gozkd/gozkd/server/facts"
)

// told is a refusal with a story.
func told(t *testing.T, e facts.EndedSession) []byte {
	t.Helper()
	e.Cause, e.Story = e.Verdict()
	text, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	return slices.Concat(refusal, reply(proto.XidPing, 0, proto.OK, jute.AppendBuffer(nil, text)))
}

// expire returns the last error of a Client of three servers that claims its session, and how long
// that took: the first server that is asked gives the first of the answers, and so on. They are all
// given.
func expire(t *testing.T, change func(*client.Config), answers ...[]byte) (took time.Duration, err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var begun time.Time
		asked := 0
		f := &fake{answer: func(proto.RequestHeader, []byte) []byte { return []byte{} }}
		f.handshake = func(r proto.ConnectRequest) []byte {
			if r.SessionID == 0 {
				return welcome(r)
			}
			if asked == 0 {
				begun = time.Now()
			}
			if asked++; asked > len(answers) {
				t.Error("another server was asked")
				return refusal
			}
			return answers[asked-1]
		}
		c, _ := connectFake(t, f, func(cfg *client.Config) { cfg.Servers = []string{"a:1", "b:1", "c:1"} }, change)
		c.Reconnect()
		<-c.Done()
		took, err = time.Since(begun), c.Err()
		if asked != len(answers) {
			t.Errorf("%d servers were asked, want %d", asked, len(answers))
		}
	})
	return took, err
}

// If the first server that refuses the session knows only a part of the story, the others are
// asked, until the cause is known.
func TestStory_Joined(t *testing.T) {
	third := facts.EndedSession{
		Session: "0x4d", Zxid: "0x9", How: facts.Expired, TimeoutMs: 9000, Decider: 1, Server: 2, Tellers: []int{3},
	}
	leader, last := third, third
	leader.Reason, leader.Tellers = facts.BySilence, []int{1}
	last.Client, last.Tellers = &facts.EndedClient{Address: "h:1", SilentMs: 9000, Open: true}, []int{2}
	whole := leader
	whole.Client = last.Client
	nobody := last
	nobody.Tellers = nil
	for _, c := range []struct {
		name    string
		answers [][]byte
		cause   facts.Cause
	}{
		{"the first knows all", [][]byte{told(t, whole)}, facts.ClientSilent},
		{"two know all", [][]byte{told(t, leader), told(t, last)}, facts.ClientSilent},
		{"each knows a part", [][]byte{told(t, third), told(t, leader), told(t, last)}, facts.ClientSilent},
		{"one is away", [][]byte{told(t, third), nil, told(t, last)}, facts.UnknownCause},
		{"one tells nothing", [][]byte{told(t, leader), refusal, told(t, last)}, facts.ClientSilent},
		{"one names no teller", [][]byte{told(t, leader), told(t, nobody)}, facts.ClientSilent},
		{"one does not know of the end", [][]byte{told(t, leader), welcome(proto.ConnectRequest{}), told(t, last)}, facts.ClientSilent},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := expire(t, func(*client.Config) {}, c.answers...)
			var e *client.ExpiredError
			begin := proto.ErrSessionExpired.Error() + ": session 0x4d"
			if !errors.As(err, &e) || e.Cause != c.cause || !errors.Is(err, proto.ErrSessionExpired) || !strings.HasPrefix(err.Error(), begin) {
				t.Errorf("%v", err)
			}
		})
	}
}

// What is no story is none, and is not waited for.
func TestStory_None(t *testing.T) {
	open := append(slices.Clone(refusal), 0) // the server keeps the connection open
	frame := func(story string) []byte {
		return slices.Concat(refusal, reply(proto.XidPing, 0, proto.OK, jute.AppendBuffer(nil, []byte(story))))
	}
	for _, c := range []struct {
		name   string
		limit  time.Duration // Config.ConnectTimeout
		answer []byte
		most   time.Duration
	}{
		{"closed", time.Second, refusal, 0},
		{"open", time.Minute, open, time.Second},
		{"open, and the attempt ends before", time.Millisecond, open, time.Millisecond},
		{"no header", time.Second, slices.Concat(refusal, framed([]byte{1})), 0},
		{"no sentence", time.Second, frame(`{"session":"0x4d"}`), 0},
		{"no object", time.Second, frame(`[]`), 0},
		{"too long", time.Second, slices.Concat(refusal, []byte{0, 2, 0, 0}), 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			took, err := expire(t, func(cfg *client.Config) { cfg.ConnectTimeout = c.limit }, c.answer)
			if err != error(proto.ErrSessionExpired) || took > c.most { //nolint:errorlint // nothing else is in it
				t.Errorf("%v after %v", err, took)
			}
		})
	}
}
