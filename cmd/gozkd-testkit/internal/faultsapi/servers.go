package faultsapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/gozkd/gozkd/internal/cluster"
	"github.com/gozkd/gozkd/internal/portfile"
)

// startServers starts a cluster that shares nothing with the others but the process.
func (a *api) startServers(ctx context.Context, q *request) (any, error) {
	body := struct {
		Ensemble int    `json:"ensemble"`
		Tick     string `json:"tick"`
	}{1, "500ms"}
	if len(q.body) > 0 {
		if err := q.decode(&body); err != nil {
			return nil, err
		}
	}
	tick, err := time.ParseDuration(body.Tick)
	if err != nil || tick < time.Millisecond || tick > time.Hour || body.Ensemble < 1 || body.Ensemble > cluster.MaxMembers {
		return nil, invalid("ensemble is %d and tick is %q; allowed: 1 to %d, and 1ms to 1h",
			body.Ensemble, body.Tick, cluster.MaxMembers)
	}
	cfg := cluster.Config{Members: body.Ensemble, Logger: a.logger}
	cfg.Server.Tick = tick
	c, err := cluster.Start(ctx, cfg)
	if err != nil {
		return nil, err
	}
	id, err := a.further.put(func(id int) (*api, error) {
		return newAPI(c, a.logger, fmt.Sprintf("%s/servers/%d", a.base, id)), nil
	})
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return struct {
		ID int `json:"id"`
		portfile.Ports
	}{id, Ports(c, fmt.Sprintf("http://%s%s/servers/%d", q.Host, a.base, id))}, nil
}

// Ports says where the servers of a cluster listen, and where the requests about them go.
func Ports(c *cluster.Cluster, faults string) portfile.Ports {
	where := portfile.Ports{Client: c.ConnectString(), Faults: faults}
	for _, m := range c.Members() {
		where.Members = append(where.Members, portfile.Member{ID: m.ID(), Client: m.Address()})
	}
	return where
}

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
