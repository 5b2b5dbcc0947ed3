package main

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/internal/backoff"
	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/test/compat/server"
)

// planted is the content of the tree before the attack. A stranger has no permission to change it.
type planted struct {
	n int
}

const plantedRoot = "/planted"

func plantedPath(i int) string { return fmt.Sprintf("%s/%04d", plantedRoot, i) }

func plantedData(i int) []byte { return bytes.Repeat([]byte{byte(i)}, 10+i) }

// owner opens a session as the owner of the planted znodes.
func owner(ctx context.Context, addr string) *client.Client {
	return must.Get(connect(ctx, addr, client.Config{Auths: []client.Auth{{Scheme: "digest", Credential: []byte("owner:secret")}}}))
}

// plant creates the znodes that must survive, and those of the probes.
func plant(ctx context.Context, addrs []string) *planted {
	k := &planted{n: 300}
	zk := owner(ctx, addrs[0])
	defer must.Finally(zk.Close)
	own := client.CreateOptions{ACL: []proto.ACL{{Perms: proto.PermAll, ID: proto.ID{Scheme: "auth"}}}}
	must.Get2(zk.Create(ctx, plantedRoot, nil, own))
	for i := range k.n {
		must.Get2(zk.Create(ctx, plantedPath(i), plantedData(i), own))
	}
	for i := range addrs {
		must.Get2(zk.Create(ctx, probePath(i), nil, client.CreateOptions{}))
	}
	return k
}

// missing returns what is not as it was planted, is older than the probes were told, or does not
// work.
func (k *planted) missing(ctx context.Context, addrs []string, versions []int32) []string {
	var err error
	for range 20 { // an ensemble may need a moment more
		if err = k.check(ctx, addrs, versions); err == nil {
			return nil
		}
		if !backoff.Sleep(ctx, 500*time.Millisecond) {
			break
		}
	}
	return []string{firstLine(err)}
}

func (k *planted) check(ctx context.Context, addrs []string, versions []int32) error {
	return must.Try(func() {
		zk := owner(ctx, addrs[0])
		defer must.Finally(zk.Close)
		must.Get(zk.Sync(ctx, plantedRoot))
		for i := range k.n {
			data, _, err := zk.Get(ctx, plantedPath(i), false)
			if err != nil || !bytes.Equal(data, plantedData(i)) {
				must.Failf("%s is lost or changed: %w", plantedPath(i), err)
			}
		}
		for i, version := range versions {
			if _, stat, err := zk.Get(ctx, probePath(i), false); err != nil || stat.Version < version {
				must.Failf("%s has version %d, acknowledged was %d: %w", probePath(i), stat.Version, version, err)
			}
		}
		must.Get(zk.Set(ctx, plantedPath(0), plantedData(0), client.AnyVersion))
	})
}

// lastZxid returns the counter of the server's last zxid; 0: the server did not tell it.
func lastZxid(ctx context.Context, addr string) uint32 {
	answer, _ := server.Srvr(ctx, addr)                 // without a zxid after an error
	zxid, _ := strconv.ParseUint(answer["Zxid"], 0, 64) // 0 if it has another form
	return uint32(zxid)
}
