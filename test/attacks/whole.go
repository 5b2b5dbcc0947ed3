package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/rawclient"
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
	c, err := rawclient.Dial(dialing, addr)
	if err != nil {
		return nil, err
	}
	s := &stranger{Conn: c}
	_, err = s.Handshake(&proto.ConnectRequest{TimeoutMs: 30000, Passwd: make([]byte, proto.PasswdBytes)}, patience)
	if err == nil {
		s.sent = rawclient.AppendRequest(s.sent, -4, proto.OpAuth, (&proto.AuthRequest{Scheme: "digest", Auth: []byte("owner:secret")}).Append(nil))
		err = s.flush()
	}
	if err == nil {
		_, err = s.ReadFrame(patience)
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return s, nil
}

// plant creates the znodes that must survive, and those of the probes.
func plant(ctx context.Context, addrs []string) (_ *planted, err error) {
	s, err := owner(ctx, addrs[0])
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	k := &planted{n: 300}
	own := []proto.ACL{{Perms: proto.PermAll, ID: proto.ID{Scheme: "auth"}}}
	if err := s.createWith(plantedRoot, nil, own); err != nil {
		return nil, err
	}
	for i := range k.n {
		if err := s.createWith(plantedPath(i), plantedData(i), own); err != nil {
			return nil, err
		}
	}
	for i := range addrs {
		if err := s.create(probePath(i), nil); err != nil {
			return nil, err
		}
	}
	return k, nil
}

// missing returns what is not as it was planted, is older than the probes were told, or does not
// work.
func (k *planted) missing(ctx context.Context, addrs []string, versions []int32) []string {
	var err error
	for range 20 { // an ensemble may need a moment more
		if err = k.check(ctx, addrs, versions); err == nil {
			return nil
		}
		if sleep(ctx, 500*time.Millisecond) != nil {
			break
		}
	}
	return []string{firstLine(err)}
}

func (k *planted) check(ctx context.Context, addrs []string, versions []int32) (err error) {
	s, err := owner(ctx, addrs[0])
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	path := plantedRoot
	if _, err := s.call(proto.OpSync, (&proto.PathRequest{Path: &path}).Append(nil)); err != nil {
		return err
	}
	for i := range k.n {
		data, _, err := s.get(plantedPath(i))
		if err != nil || !bytes.Equal(data, plantedData(i)) {
			return fmt.Errorf("%s is lost or changed: %w", plantedPath(i), err)
		}
	}
	for i, version := range versions {
		if _, stat, err := s.get(probePath(i)); err != nil || stat.Version < version {
			return fmt.Errorf("%s has version %d, acknowledged was %d: %w", probePath(i), stat.Version, version, err)
		}
	}
	return s.set(plantedPath(0), plantedData(0))
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
