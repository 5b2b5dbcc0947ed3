package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/gozkd/gozkd/internal/backoff"
	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
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
func owner(ctx context.Context, addr string) (*stranger, error) {
	dialing, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	nc, err := new(net.Dialer).DialContext(dialing, "tcp", addr)
	if err != nil {
		return nil, err
	}
	s, err := newStranger(nc.(*net.TCPConn))
	if err != nil {
		return nil, err
	}
	auth := proto.AuthRequest{Scheme: "digest", Auth: []byte("owner:secret")}
	if _, err := s.call(proto.OpAuth, auth.Append(nil)); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// plant creates the znodes that must survive, and those of the probes.
func plant(ctx context.Context, addrs []string) (*planted, error) {
	k := &planted{n: 300}
	return k, must.Try(func() {
		s := must.Get(owner(ctx, addrs[0]))
		defer must.Finally(s.Close)
		own := []proto.ACL{{Perms: proto.PermAll, ID: proto.ID{Scheme: "auth"}}}
		must.Do(s.createWith(plantedRoot, nil, own))
		for i := range k.n {
			must.Do(s.createWith(plantedPath(i), plantedData(i), own))
		}
		for i := range addrs {
			must.Do(s.create(probePath(i), nil))
		}
	})
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
		s := must.Get(owner(ctx, addrs[0]))
		defer must.Finally(s.Close)
		path := plantedRoot
		must.Get(s.call(proto.OpSync, (&proto.PathRequest{Path: &path}).Append(nil)))
		for i := range k.n {
			data, _, err := s.get(plantedPath(i))
			if err != nil || !bytes.Equal(data, plantedData(i)) {
				must.Failf("%s is lost or changed: %w", plantedPath(i), err)
			}
		}
		for i, version := range versions {
			if _, stat, err := s.get(probePath(i)); err != nil || stat.Version < version {
				must.Failf("%s has version %d, acknowledged was %d: %w", probePath(i), stat.Version, version, err)
			}
		}
		must.Do(s.set(plantedPath(0), plantedData(0)))
	})
}

// get returns a znode's data.
func (s *stranger) get(path string) ([]byte, proto.Stat, error) {
	var r proto.DataResponse
	body, err := s.call(proto.OpGetData, getData(path))
	if err != nil {
		return nil, r.Stat, err
	}
	d := jute.NewDecoder(body)
	r.Decode(&d)
	return r.Data, r.Stat, d.Err()
}

// lastZxid returns the counter of the server's last zxid; 0: the server did not tell it.
func lastZxid(ctx context.Context, addr string) uint32 {
	answer, err := server.FourLetterWord(ctx, addr, "srvr")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(answer) {
		if value, ok := strings.CutPrefix(line, "Zxid: "); ok {
			zxid, _ := strconv.ParseUint(strings.TrimSpace(value), 0, 64) // 0 if it has another form
			return uint32(zxid)
		}
	}
	return 0
}
