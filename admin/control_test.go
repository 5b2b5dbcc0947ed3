package admin_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/admin"
	"github.com/gozkd/gozkd/internal/memberid"
	"github.com/gozkd/gozkd/server"
)

func TestTransferLeadership(t *testing.T) {
	withThree(t, func(t *testing.T, byMode map[string]*server.Server) {
		to := memberid.Number(byMode["follower"].Status().Member)
		path := fmt.Sprintf("/commands/transfer_leadership?to=%d", to)
		observer := memberid.Number(byMode["observer"].Status().Member)
		for _, c := range []struct {
			mode, path string
			want       int
		}{
			{"leader", "/commands/transfer_leadership?to=x", 400},
			{"leader", "/commands/transfer_leadership?to=9", 400},
			{"leader", fmt.Sprintf("/commands/transfer_leadership?to=%d", observer), 400},
			{"observer", "/commands/transfer_leadership", 409},
		} {
			if w := do(t, admin.New(byMode[c.mode], admin.Options{}), http.MethodPost, c.path, &root, ""); w.Code != c.want {
				t.Errorf("%s on the %s: status %d, %s, want %d", c.path, c.mode, w.Code, w.Body, c.want)
			}
		}
		// The follower may be out of step, or another election may come first.
		for begin := time.Now(); time.Since(begin) < time.Minute; time.Sleep(10 * time.Millisecond) {
			for _, s := range byMode {
				w := do(t, admin.New(s, admin.Options{}), http.MethodPost, path, &root, "")
				var answer struct {
					Leader int `json:"leader_id"`
				}
				if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
					t.Fatalf("%s: %v", w.Body, err)
				}
				if w.Code == 200 && answer.Leader == to {
					return
				}
			}
		}
		t.Errorf("server %d did not become the leader", to)
	})
}

// A server alone names no other one to ask.
func TestTransferLeadership_Alone(t *testing.T) {
	s := start(t, server.Config{})
	w := do(t, admin.New(s, admin.Options{}), http.MethodPost, "/commands/transfer_leadership", &root, "")
	if w.Code != http.StatusConflict || !strings.Contains(w.Body.String(), "this server is alone") {
		t.Errorf("status %d, %s", w.Code, w.Body)
	}
}

func TestExpireSession(t *testing.T) {
	s := start(t, server.Config{})
	c := connect(t, s)
	if _, err := c.Create("/e", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
	id := fmt.Sprintf("0x%x", c.SessionID())
	for _, q := range []struct {
		id, says string
		want     int
	}{
		{"", "session id in hexadecimal", 400},
		{"0xzz", "session id in hexadecimal", 400},
		{"0x1", "there is no session 0x1", 404},
		{"144115213845659649", "there is no session 0x200000600000001", 404},
		{id, id, 200},
		{id, "there is no session " + id, 404},
	} {
		w := do(t, admin.New(s, admin.Options{}), http.MethodPost, "/commands/expire_session?id="+q.id, &root, "")
		if w.Code != q.want || !strings.Contains(w.Body.String(), q.says) {
			t.Errorf("id %q: status %d, %s, want %d, %s", q.id, w.Code, w.Body, q.want, q.says)
		}
	}
	if exists, _, err := connect(t, s).Exists("/e"); exists || err != nil {
		t.Errorf("its ephemeral: %v, %v", exists, err)
	}
}
