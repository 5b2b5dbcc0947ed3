package faultsapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/gozkd/gozkd/internal/cluster"
	"github.com/gozkd/gozkd/internal/testca"
	"github.com/gozkd/gozkd/sasl"
	"github.com/gozkd/gozkd/server"
)

// serversBody describes the servers to start. Ports and directories are those of the members.
type serversBody struct {
	Ensemble int               `json:"ensemble"`
	Tick     duration          `json:"tick"`
	Ports    []int             `json:"ports"` // empty, or 0: free ones
	Dirs     []string          `json:"dirs"`  // empty: in memory
	TLS      bool              `json:"tls"`
	Users    map[string]string `json:"users"` // of SASL DIGEST-MD5, with their passwords
	Down     bool              `json:"down"`
	Config   server.Config     `json:"config"`
}

func (b *serversBody) check() error {
	n, tick := b.Ensemble, time.Duration(b.Tick)
	switch {
	case tick < time.Millisecond || tick > time.Hour || n < 1 || n > cluster.MaxMembers:
		return invalid("ensemble is %d and tick is %v; allowed: 1 to %d, and 1ms to 1h", n, tick, cluster.MaxMembers)
	case len(b.Ports) > 0 && len(b.Ports) != n || len(b.Dirs) > 0 && len(b.Dirs) != n:
		return invalid("%d members, %d ports, %d dirs; allowed: one for each member, or none", n, len(b.Ports), len(b.Dirs))
	}
	return nil
}

// segmentBytes is the size of a log segment in a directory: small, because many servers run, each
// for a short time.
const segmentBytes = 1 << 20

// config returns the configuration of a cluster without its logger. ca is nil without TLS.
func (b *serversBody) config(ca *testca.CA) cluster.Config {
	cfg := cluster.Config{Members: b.Ensemble, Ports: b.Ports, Down: b.Down, Server: b.Config}
	cfg.Server.Tick = time.Duration(b.Tick)
	if len(b.Users) > 0 {
		users := sasl.DigestUsers{}
		for name, password := range b.Users {
			users.Set(name, password)
		}
		cfg.Server.Auth.SASL, cfg.Server.Auth.ACLSchemes = sasl.NewDigest(users), []string{"sasl"}
	}
	if ca != nil {
		hosts := []string{"localhost", "127.0.0.1", "::1"}
		cfg.Server.TLS = ca.Issue(must{}, testca.Spec{CN: "server", Hosts: hosts}).Server()
		cfg.Server.PortUnification = true
	}
	if len(b.Dirs) > 0 {
		cfg.Adapt = func(member int, c *server.Config) {
			c.Dir, c.Memory = b.Dirs[member-1], nil
			c.NoSync, c.SegmentBytes = true, segmentBytes // only a crash of the machine would lose data
		}
	}
	return cfg
}

// startServers starts a cluster that shares nothing with the others but the process.
func (a *api) startServers(ctx context.Context, q *request) (any, error) {
	body := serversBody{Ensemble: 1, Tick: duration(500 * time.Millisecond)}
	if len(q.body) > 0 {
		if err := q.decode(&body); err != nil {
			return nil, err
		}
	}
	if err := body.check(); err != nil {
		return nil, err
	}
	var ca *testca.CA
	if body.TLS {
		ca = testca.New(must{}, "gozkd-testkit")
	}
	cfg := body.config(ca)
	cfg.Logger = a.logger
	c, err := cluster.Start(ctx, cfg)
	if err != nil {
		return nil, err
	}
	id := a.further.put(func(id int) *api {
		return newAPI(c, a.logger, fmt.Sprintf("%s/servers/%d", a.base, id), ca)
	})
	where := c.Ports()
	where.ID = id
	where.Faults = fmt.Sprintf("http://%s%s/servers/%d", q.Host, a.base, id)
	return where, nil
}

// certificate issues a certificate for a client of servers with TLS.
func (a *api) certificate(_ context.Context, q *request) (any, error) {
	var body struct {
		Name string `json:"name"`
	}
	if err := q.decode(&body); err != nil {
		return nil, err
	}
	if a.ca == nil {
		none := errors.New(`these servers take no TLS: start some with {"tls":true} by POST /servers`)
		return nil, &statusError{http.StatusConflict, none}
	}
	c := a.ca.Issue(must{}, testca.Spec{CN: body.Name})
	return struct {
		CA   string `json:"ca"`
		Cert string `json:"cert"`
		Key  string `json:"key"`
	}{string(a.ca.CertPEM()), string(c.CertPEM()), string(c.KeyPEM(must{}))}, nil
}

// must ends a request when the system makes no key.
type must struct{ testing.TB }

func (must) Helper() {}

func (must) Fatal(args ...any) { panic(fmt.Sprint(args...)) }

// toFurther serves the requests about a cluster that a request started.
func (a *api) toFurther(w http.ResponseWriter, r *http.Request) {
	q := &request{Request: r}
	further, err := named(q, "server", a.further.get)
	if err != nil {
		answer(w, nil, err)
		return
	}
	http.StripPrefix("/servers/"+q.PathValue("id"), further.handler).ServeHTTP(w, r)
}

// closeServers closes a cluster that a request started.
func (a *api) closeServers(_ context.Context, q *request) (any, error) {
	further, err := named(q, "server", a.further.take)
	if err != nil {
		return nil, err
	}
	return struct{}{}, errors.Join(further.closeFurther(), further.cluster.Close())
}

// closeFurther closes the clusters that requests started, but not a's own.
func (a *api) closeFurther() (err error) {
	for _, further := range a.further.all() {
		err = errors.Join(err, further.closeFurther(), further.cluster.Close())
	}
	return err
}
