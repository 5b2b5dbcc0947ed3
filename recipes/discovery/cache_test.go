package discovery_test

import (
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/zktest"
)

// On servers that lost their data, another instance has the zxids of a parsed one.
func TestD5_ServersForgot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, anew := zktest.Start(t), zktest.Start(t)
		at := one
		one.Load(map[string]string{"/services/web/a": `{"name":"web","id":"a","port":1}`})
		anew.Load(map[string]string{"/services/web/a": `{"name":"web","id":"a","port":2}`})
		if before, after := one.Znode("/services/web/a"), anew.Znode("/services/web/a"); int64(before.Stat.Mzxid) != int64(after.Stat.Mzxid) {
			t.Fatalf("0x%x and 0x%x", int64(before.Stat.Mzxid), int64(after.Stat.Mzxid))
		}
		c, err := recipes.Connect(t.Context(), []string{"service:2181"}, recipes.Retry(recipes.Forever(time.Second)),
			recipes.Dialer(func(network, _ string, timeout time.Duration) (net.Conn, error) {
				return at.Dialer()(network, at.ConnectString(), timeout)
			}))
		check(t, err)
		defer func() { check(t, c.Close()) }()
		cache := newDiscovery(c).Cache("web")
		defer cache.Close()
		check(t, cache.Start(t.Context()))
		check(t, cache.Wait(t.Context()))
		if all := cache.Instances(); len(all) != 1 || all[0].Port != 1 {
			t.Errorf("%+v", all)
		}
		at = anew
		one.Stop()
		time.Sleep(30 * time.Second)
		if all := cache.Instances(); !cache.Complete() || len(all) != 1 || all[0].Port != 2 {
			t.Errorf("complete: %v, %+v", cache.Complete(), all)
		}
	})
}
