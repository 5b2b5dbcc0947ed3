package sim

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/internal/memnet"
	"github.com/gozkd/gozkd/internal/serverlist"
	jepsenlite "github.com/gozkd/gozkd/test/jepsen-lite"
)

// clientHosts is the number of hosts on which clients run.
const clientHosts = 4

// world is the ensemble, its network, and what is wrong with them.
type world struct {
	plan      *plan
	rng       *rand.Rand // fine choices of the nemesis
	network   *memnet.Network
	members   []*member
	rec       *jepsenlite.Recorder
	logs      hclog.Logger
	begun     time.Time
	collected time.Duration // when garbage was last collected

	reconfigs    []*reconfiguration // under way
	reconfigured map[string]int     // how often what was done
	asked        int                // requests so far
	requests     sync.WaitGroup

	stopped chan *standstill // that have begun

	damage [maxMembers + 1]atomic.Uint32 // by member: not 0: the next write to another member is damaged, and where

	lossy atomic.Bool // all links between members have a long round trip, and lose packets

	mu       sync.Mutex
	disturbs map[link]int  // how many cuts and delays a link suffers
	cuts     map[link]int  // how many of them are cuts
	goodFrom time.Duration // since when a majority is well; -1: it is not
	lastAck  time.Duration // of a probe
	longest  time.Duration // time without an acknowledgement while a majority was well
	// Until restUntil clients rest: they write now and then, or not at all.
	restUntil time.Duration
	restIdle  bool
	rested    time.Duration // of all times of rest
	quietFrom time.Duration // since when no fault was at work; -1: one is
	stood     bool          // it was complained about
	problems  []string

	expired  atomic.Int64 // sessions of movers, at rest
	watched  atomic.Int64 // changes that watchers compared with their events
	caughtUp atomic.Int64 // returns of watchers with all events
	missed   atomic.Int64 // and without
	// Connections to members whose port for clients had moved.
	elsewhere atomic.Int64
	upgrades  tally // of requests that make a local session global
	returns   tally // of the first returns of such a session to its member
}

type link struct{ from, to string }

const maxMembers = 7

func newWorld(p *plan, log io.Writer) *world {
	w := &world{
		plan: p, rng: rand.New(rand.NewPCG(p.seed, 1)), network: memnet.New(500 * time.Microsecond), rec: jepsenlite.NewRecorder(),
		begun: time.Now(), disturbs: map[link]int{}, cuts: map[link]int{}, goodFrom: -1, reconfigured: map[string]int{},
		stopped: make(chan *standstill, maxMembers),
	}
	w.logs = hclog.New(&hclog.LoggerOptions{Output: log, Level: hclog.Info, TimeFormat: "15:04:05.000", TimeFn: time.Now})
	for id := 1; id <= p.members+p.observers+1; id++ {
		m := &member{w: w, id: id, home: voter, clientPort: firstClientPort, peerPort: 2888, disk: newDisk(), clock: newClock()}
		switch {
		case id > p.members+p.observers:
			m.home = outside
		case id > p.members:
			m.home = observer
		}
		m.role = m.home
		w.members = append(w.members, m)
	}
	for _, m := range w.members {
		m.lines = w.lines()
	}
	w.rec.Dial = func(client, address string, limit time.Duration) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		return w.dial(ctx, clientHost(client), address)
	}
	// A server lets a client wait for a tick before it refuses.
	w.rec.Handshake = tick + time.Second
	return w
}

func clientHost(client string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(client)) // does not fail
	return fmt.Sprintf("c%d", h.Sum32()%clientHosts)
}

func (w *world) now() time.Duration { return time.Since(w.begun) }

// inside returns the members of the ensemble, as far as is known.
func (w *world) inside() (members []*member) {
	for _, m := range w.members {
		if m.role != outside {
			members = append(members, m)
		}
	}
	return members
}

// lines returns the server lines of the members.
func (w *world) lines() (lines []string) {
	for _, m := range w.inside() {
		lines = append(lines, m.line())
	}
	return lines
}

// addresses returns where clients find the first members.
func (w *world) addresses() (all []string) {
	for _, m := range w.members {
		if m.home != outside {
			all = append(all, m.clientAddress())
		}
	}
	return all
}

// dial connects a host to a member, whose first address for clients is given, at either port for
// clients.
func (w *world) dial(ctx context.Context, from, address string) (net.Conn, error) {
	c, err := w.network.Dial(ctx, from, address)
	if errors.Is(err, syscall.ECONNREFUSED) {
		host, _, _ := strings.Cut(address, ":")
		if c, err = w.network.Dial(ctx, from, fmt.Sprintf("%s:%d", host, secondClientPort)); err == nil {
			w.elsewhere.Add(1)
		}
	}
	return c, err
}

func (w *world) listen(address string) net.Listener {
	l, err := w.network.Listen(address)
	if err != nil {
		panic(err) // a member listens once in its life
	}
	return l
}

// complain notes that something is wrong with the servers.
func (w *world) complain(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.problems = append(w.problems, fmt.Sprintf("at %v: ", w.now())+fmt.Sprintf(format, args...))
	w.logs.Error("COMPLAINT", "what", w.problems[len(w.problems)-1])
}

// cut cuts a direction between two hosts, or takes back one cut.
func (w *world) cut(from, to string, on bool) {
	w.mu.Lock()
	l, by := link{from, to}, 1
	if !on {
		by = -1
	}
	w.cuts[l] += by
	w.disturbs[l] += by
	cut := w.cuts[l] > 0
	w.mu.Unlock()
	w.network.Cut(from, to, cut)
}

// delay slows a direction down, or takes that back.
func (w *world) delay(from, to string, on bool, d time.Duration) {
	w.mu.Lock()
	l := link{from, to}
	if on {
		w.disturbs[l]++
	} else {
		w.disturbs[l]--
		d = 0
	}
	w.mu.Unlock()
	w.network.Delay(from, to, d)
}

// others returns the hosts of all members except m.
func (w *world) others(m *member) (hosts []string) {
	for _, o := range w.members {
		if o != m {
			hosts = append(hosts, o.host())
		}
	}
	return hosts
}

// everyone returns the hosts of all members except m, and of all clients.
func (w *world) everyone(m *member) []string {
	hosts := append(w.others(m), probeHost)
	for i := range clientHosts {
		hosts = append(hosts, fmt.Sprintf("c%d", i))
	}
	return hosts
}

// leader returns the member that leads, or any member if none or several say that they do.
func (w *world) leader() *member {
	for _, m := range w.members {
		if st := m.status(); st.Mode == "leader" && st.Serving {
			return m
		}
	}
	return w.members[w.rng.IntN(w.plan.members)]
}

// whole reports whether all members serve, vote if they are to, and are what they were in the
// beginning.
func (w *world) whole() bool {
	leaders := 0
	if len(w.reconfigs) > 0 {
		return false
	}
	for _, m := range w.inside() {
		st := m.status()
		if !st.Serving || !st.Whole {
			return false
		}
		if st.Mode == "leader" {
			leaders++
		}
	}
	return leaders == 1
}

// await waits until cond holds, and reports whether it did in time.
func (w *world) await(cond func() bool, patience time.Duration) bool {
	for end := w.now() + patience; ; time.Sleep(100 * time.Millisecond) {
		w.restartFailed()
		w.reconfigure()
		w.collectGarbage()
		if cond() {
			return true
		}
		if w.now() > end {
			return false
		}
	}
}

// sameState checks that all members come to the same state, as their digests show, and that the
// membership is what the reconfigurations that were carried out have left.
func (w *world) sameState() {
	type state struct {
		zxid   int64
		digest uint64
	}
	var states []state
	same := w.await(func() bool {
		states = states[:0]
		for _, m := range w.inside() {
			zxid, digest := m.life.s.Facts().Digest()
			states = append(states, state{zxid, digest})
		}
		for _, s := range states {
			if s.zxid != states[0].zxid {
				return false
			}
		}
		return true
	}, 30*time.Second)
	for _, s := range states {
		if !same || s != states[0] {
			w.complain("the members do not come to the same state: %x", states)
			return
		}
	}
	if !w.await(w.clientPortsBack, 30*time.Second) {
		w.complain("not all members, and only they, have their first ports for clients again")
	}
	want, _, err := serverlist.ParseConfig(strings.Join(w.lines(), "\n"))
	for _, m := range w.inside() {
		text := m.life.s.Facts().Membership()
		if got, _, gotErr := serverlist.ParseConfig(text); err != nil || gotErr != nil || !got.Equal(want) {
			w.complain("the members, as member %d knows them, are %s, %v; want %s, %v", m.id, text, gotErr, w.lines(), err)
		}
	}
}

// clientPortsBack reports whether all members have their first ports for clients, and no other.
func (w *world) clientPortsBack() bool {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	open := func(address string) bool {
		c, err := w.network.Dial(ctx, probeHost, address)
		if err == nil {
			_ = c.Close() // nothing was sent
		}
		return err == nil
	}
	return !slices.ContainsFunc(w.inside(), func(m *member) bool {
		return !open(m.clientAddress()) || open(m.clientAddressAt(secondClientPort))
	})
}
