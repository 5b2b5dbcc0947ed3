package identity

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/sasl"
)

// script is a mechanism whose exchanges end as their token says, however often they are asked.
type script struct{}

func (script) New() sasl.Exchange { return script{} }

func (script) Step(token []byte) (reply []byte, id string, done bool, err error) {
	switch string(token) {
	case "more":
		return []byte("go on"), "", false, nil
	case "wrong":
		return nil, "", false, errors.New("wrong")
	}
	return nil, string(token), true, nil
}

// token hands a client's token to its exchange, as a server does.
func (c *Client) token(a *Authority, token string) (answer Answer) {
	answer, ok := c.Answer(a)
	if !ok {
		if c.SASL == nil {
			c.SASL = a.Exchange(time.Time{})
		}
		c.SASL.Step([]byte(token), 0, time.Minute)
		answer, _ = c.Answer(a)
	}
	return answer
}

// An exchange ends with the token that proves an identity, or fails to: the mechanism gets no
// further token, also if a failure leaves the connection open.
func TestExchange_EndsOnce(t *testing.T) {
	for _, c := range []struct {
		tokens []string
		proved []bool
		want   string // the identity of scheme sasl at the end
	}{
		{[]string{"more", "alice", "bob"}, []bool{false, true, false}, "alice"},
		{[]string{"alice", "alice"}, []bool{true, false}, "alice"},
		{[]string{"more", "wrong", "bob", "more"}, []bool{false, false, false, false}, ""},
		{[]string{"wrong", "bob"}, []bool{false, false}, ""},
	} {
		for _, allow := range []bool{false, true} {
			var a Authority
			a.settings.Store(&Settings{Authentication: Authentication{SASL: script{}, AllowFailedSASL: allow}})
			a.hooks.Failed = func() {}
			client, over := NewClient("host"), false
			for i, token := range c.tokens {
				answer := client.token(&a, token)
				if over && answer.Err == nil || over && !allow && answer.Code != proto.ErrAuthFailed || answer.Done != c.proved[i] {
					t.Errorf("%v, failures allowed %v: token %d has the answer %+v", c.tokens, allow, i, answer)
				}
				over = over || answer.Done || answer.Err != nil
			}
			i := slices.IndexFunc(client.IDs, func(id proto.ID) bool { return id.Scheme == SchemeSASL })
			if got := i >= 0; got != (c.want != "") || got && client.IDs[i].ID != c.want {
				t.Errorf("%v: the client is %v, want %q", c.tokens, client.IDs, c.want)
			}
		}
	}
}
