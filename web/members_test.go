package web_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/gozkd/gozkd/internal/cluster"
	"github.com/gozkd/gozkd/server"
	"github.com/gozkd/gozkd/web"
)

// The view of the ensemble asks the other members, and no other address, and shows why it does not
// know the rest.
func TestExplore_OtherMembers(t *testing.T) {
	c, err := cluster.Start(t.Context(), cluster.Config{Members: 3, InMemory: true, Server: server.Config{Words: []string{"*"}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	m, err := c.Member(1)
	if err != nil {
		t.Fatal(err)
	}
	addresses := make(map[string]int)
	for _, other := range m.Server().Facts().Members() {
		if other.ID != 1 {
			addresses[other.ClientAddress] = other.ID
		}
	}
	var asked atomic.Int64
	ask := func(_ context.Context, address, word string) (string, error) {
		asked.Add(1)
		switch id := addresses[address]; {
		case id == 0:
			t.Errorf("%s was asked", address)
		case id == 3 && word == "mntr":
			return "", errors.New("not in the whitelist")
		case word == "srvr":
			return fmt.Sprintf("Zookeeper version: 3.9.5-gozkd-%d, built\nZxid: 0x7\nMode: follower\n", id), nil
		case word == "mntr":
			return "zk_znode_count\t5\nzk_p99_gozkd_log_sync_duration_seconds\t0.25\nzk_gozkd_term\tNaN\nzk_other\t1\n", nil
		case word == "dirs":
			return "datadir_size: 10\nlogdir_size: 20\n", nil
		}
		return "", errors.New("unexpected")
	}
	h := web.New(m.Server(), web.Options{Anonymous: web.Read, Ask: ask})
	defer h.Close()
	s := serve(t, m.Server(), h)
	for range 2 { // the second answer is remembered
		r := s.want(200, `"version":"3.9.5-gozkd-2","zxid":"0x7","values":{"datadir_size":10,"logdir_size":20,"p99_gozkd_log_sync_duration_seconds":0.25,"znode_count":5}}`, "GET", "/ui/api/ensemble", "")
		if !strings.Contains(r.body, `"version":"3.9.5-gozkd-3","zxid":"0x7","unknown":"not in the whitelist"}`) {
			t.Error(r.body)
		}
	}
	if n := asked.Load(); n != 5 {
		t.Errorf("%d words were asked", n)
	}
}
