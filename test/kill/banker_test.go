package kill

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/proto"
)

// A banker moves money between the accounts of a bank, one transfer at a time, with go-zookeeper's
// client. A transfer reads two accounts and changes both in one multi, with the versions that it
// has read; the multi also creates a receipt. A banker holds an ephemeral all the time.
type banker struct {
	name     string
	ledger   *ledger
	rng      *rand.Rand
	conn     *zk.Conn
	made     int
	resting  atomic.Bool     // set to make run return
	receipts map[string]bool // true: acknowledged; false: no answer
}

const (
	bankAccounts = 4
	bankTotal    = 100 * bankAccounts
)

// newBanker connects a banker whose connection ends with the test, and makes its ephemeral.
func newBanker(t *testing.T, addr, name string, l *ledger, rng *rand.Rand) *banker {
	t.Helper()
	// The client's own pause between two attempts is a second. This one tries again at once, until
	// the server is back.
	ctx, cancel := context.WithCancel(context.Background())
	dialer := func(network, address string, _ time.Duration) (net.Conn, error) {
		pause := time.NewTicker(5 * time.Millisecond)
		defer pause.Stop()
		for {
			c, err := new(net.Dialer).DialContext(ctx, network, address)
			if err == nil || ctx.Err() != nil {
				return c, err
			}
			<-pause.C
		}
	}
	conn, _, err := zk.Connect([]string{addr}, workerTimeout, zk.WithLogger(quiet{}), zk.WithDialer(dialer), zk.WithHostProvider(&onlyHost{}))
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	b := &banker{name: name, ledger: l, rng: rng, conn: conn, receipts: map[string]bool{}}
	t.Cleanup(func() {
		b.resting.Store(true)
		cancel()
		conn.Close()
	})
	if _, err := conn.Create("/desk-"+name, nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
	return b
}

// run makes transfers until resting is set. A request that is sent while the server is down waits
// in the client until the server is back, so the server must be started before waiting for run.
func (b *banker) run() {
	for !b.resting.Load() {
		var broken *net.OpError
		switch err := b.transfer(); {
		case err == nil, errors.Is(err, zk.ErrConnectionClosed), errors.As(err, &broken):
		case errors.Is(err, zk.ErrSessionExpired):
			b.ledger.faultf("ephemeral: the session of %s has expired", b.name)
			return
		default:
			b.ledger.faultf("answer: transfer of %s: %v", b.name, err)
			return
		}
	}
}

// transfer makes one transfer. A conflict with another banker is not an error.
func (b *banker) transfer() error {
	from := b.rng.IntN(bankAccounts)
	to := (from + 1 + b.rng.IntN(bankAccounts-1)) % bankAccounts
	x, sx, err := b.read(from)
	if err != nil {
		return err
	}
	y, sy, err := b.read(to)
	if err != nil {
		return err
	}
	b.made++
	receipt := fmt.Sprintf("/receipts/%s.%d", b.name, b.made)
	sum := b.rng.IntN(10)
	_, err = b.conn.Multi(
		&zk.SetDataRequest{Path: bankAccount(from), Data: []byte(strconv.Itoa(x - sum)), Version: sx.Version},
		&zk.SetDataRequest{Path: bankAccount(to), Data: []byte(strconv.Itoa(y + sum)), Version: sy.Version},
		&zk.CreateRequest{Path: receipt, Acl: zk.WorldACL(zk.PermAll)},
	)
	switch {
	case err == nil:
		b.receipts[receipt] = true
		b.ledger.count("acknowledged", 1)
		b.ledger.count("of these by go-zookeeper", 1)
	case errors.Is(err, zk.ErrBadVersion):
		b.ledger.count("reads and refusals", 1)
		return nil
	default:
		b.receipts[receipt] = false
		b.ledger.count("without an answer", 1)
	}
	return err
}

func (b *banker) read(i int) (int, *zk.Stat, error) {
	data, stat, err := b.conn.Get(bankAccount(i))
	if err != nil {
		return 0, nil, err
	}
	v, err := strconv.Atoi(string(data))
	return v, stat, err
}

func bankAccount(i int) string { return fmt.Sprintf("/bank/%d", i) }

// checkBank compares the bank with what the bankers know, and resolves the transfers without an
// answer.
func checkBank(c *client, l *ledger, bankers []*banker) error {
	accounts, err1 := c.list("/bank")
	receipts, err2 := c.list("/receipts")
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	sum, versions := 0, 0
	for p, n := range accounts {
		v, err := strconv.Atoi(n.data)
		if err != nil {
			l.faultf("invented: %s is %q", p, n.data)
		}
		sum += v
		versions += int(n.stat.Version)
	}
	if sum != bankTotal || versions != 2*len(receipts) {
		l.faultf("lost: the bank has %d, want %d, after %d sets and %d receipts", sum, bankTotal, versions, len(receipts))
	}
	for _, b := range bankers {
		for p, acked := range b.receipts {
			switch _, there := receipts[p]; {
			case acked && !there:
				l.faultf("lost: %s", p)
				delete(b.receipts, p) // report a fault once
			case !acked && !there:
				delete(b.receipts, p)
			case !acked:
				b.receipts[p] = true
				l.count("found without an answer", 1)
			}
			delete(receipts, p)
		}
		n, err := c.get("/desk-" + b.name)
		if err != nil {
			return err
		}
		if !n.exists || n.stat.EphemeralOwner != proto.SessionID(b.conn.SessionID()) {
			l.faultf("ephemeral: that of %s is gone, or of another session: %+v", b.name, n)
		}
	}
	for p := range receipts {
		l.faultf("invented: %s", p)
	}
	return nil
}

// onlyHost is a host provider that never asks for a pause.
type onlyHost struct{ addr string }

func (h *onlyHost) Init(servers []string) error { h.addr = servers[0]; return nil }
func (h *onlyHost) Len() int                    { return 1 }
func (h *onlyHost) Next() (string, bool)        { return h.addr, false }
func (h *onlyHost) Connected()                  {}

type quiet struct{}

func (quiet) Printf(string, ...any) {}
