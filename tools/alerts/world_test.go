package alerts

import (
	"context"
	"fmt"
	"net"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/gozkd/gozkd/internal/memnet"
	"github.com/gozkd/gozkd/internal/testkit/rawclient"
	"github.com/gozkd/gozkd/metrics"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server"
)

// world is a standalone server or an ensemble in a bubble of time, and what Prometheus gets of it.
type world struct {
	t        *testing.T
	network  *memnet.Network
	adapt    func(id int, c *server.Config) // nil: nothing is changed
	members  []string                       // server lines
	servers  map[int]*server.Server         // those that run
	ids      map[string]int                 // by instance
	interval time.Duration
	scrapes  []scrape
	began    time.Time
	fault    time.Time
}

// newWorld starts n servers, which stop with the test.
func newWorld(t *testing.T, n int, adapt func(id int, c *server.Config)) *world {
	t.Helper()
	w := &world{t: t, network: memnet.New(time.Millisecond), adapt: adapt, servers: make(map[int]*server.Server), ids: make(map[string]int),
		interval: 15 * time.Second, began: time.Now()}
	for id := 1; id <= n; id++ {
		w.members = append(w.members, fmt.Sprintf("server.%d=m%d:2888:3888;m%d:2181", id, id, id))
		w.ids[instance(id)] = id
	}
	if n == 1 {
		w.members = nil
	}
	t.Cleanup(func() {
		for id := range w.servers {
			w.stop(id)
		}
	})
	served := make([]func(), n)
	for i := range served {
		served[i] = w.start(i + 1)
	}
	for _, await := range served {
		await()
	}
	return w
}

// instance is what Prometheus calls a pod's port.
func instance(id int) string { return fmt.Sprintf("10.0.0.%d:7000", id) }

// start starts a server and returns a function that waits until it serves.
func (w *world) start(id int) (served func()) {
	w.t.Helper()
	c := server.Config{MemberID: uint8(id), Members: w.members, Tick: 2 * time.Second, MinSessionTimeout: 4 * time.Second, MaxSessionTimeout: time.Hour, ListenFixed: true}
	var err error
	if c.Listener, err = w.network.Listen(fmt.Sprintf("m%d:2181", id)); err != nil {
		w.t.Fatal(err)
	}
	if w.members != nil {
		if c.PeerListener, err = w.network.Listen(fmt.Sprintf("m%d:2888", id)); err != nil {
			w.t.Fatal(err)
		}
		c.PeerDial = func(ctx context.Context, address string) (net.Conn, error) {
			return w.network.Dial(ctx, fmt.Sprintf("m%d", id), address)
		}
	}
	if w.adapt != nil {
		w.adapt(id, &c)
	}
	s, err := server.New(c)
	if err != nil {
		w.t.Fatal(err)
	}
	w.servers[id] = s
	result := make(chan error, 1)
	go func() { result <- s.Start(context.Background()) }() // ends when the server serves or is closed
	return func() {
		w.t.Helper()
		if err := <-result; err != nil {
			w.t.Fatal(err)
		}
	}
}

func (w *world) stop(id int) {
	w.t.Helper()
	if err := w.servers[id].Close(); err != nil {
		w.t.Error(err)
	}
	delete(w.servers, id)
}

// observe lets time pass while Prometheus scrapes.
func (w *world) observe(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); {
		time.Sleep(w.interval)
		s := scrape{at: time.Now(), bodies: make(map[string]string)}
		for name, id := range w.ids {
			s.bodies[name] = ""
			if running := w.servers[id]; running != nil {
				answer := httptest.NewRecorder()
				metrics.Handler(running.Facts()).ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
				s.bodies[name] = answer.Body.String()
			}
		}
		w.scrapes = append(w.scrapes, s)
	}
}

// breaks says that the fault comes now.
func (w *world) breaks() { w.fault = time.Now() }

// leader returns the number of the leader, when there is one.
func (w *world) leader() int {
	for {
		for id, s := range w.servers {
			if st := s.Status(); st.Leader == id && st.Serving {
				return id
			}
		}
		time.Sleep(time.Second)
	}
}

// other returns the number of a server that runs and does not lead.
func (w *world) other() int {
	leader := w.leader()
	for id := range w.servers {
		if id != leader {
			return id
		}
	}
	w.t.Fatal("no other server runs")
	return 0
}

// connect opens a session.
func (w *world) connect(id int, timeout time.Duration) *rawclient.Conn {
	w.t.Helper()
	nc, err := w.servers[id].Dial(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	c := rawclient.New(nc)
	if _, err := c.Handshake(&proto.ConnectRequest{TimeoutMs: int32(timeout.Milliseconds())}, time.Minute); err != nil {
		w.t.Fatal(err)
	}
	return c
}

// create sends a create without waiting for its reply.
func create(t *testing.T, c *rawclient.Conn, path string, data []byte) {
	t.Helper()
	body := (&proto.CreateRequest{Path: path, Data: data, ACL: proto.OpenACL()}).Append(nil, proto.OpCreate)
	if err := c.Write(rawclient.AppendRequest(nil, 1, proto.OpCreate, body), time.Minute); err != nil {
		t.Fatal(err)
	}
}
