package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/config"
	"github.com/gozkd/gozkd/internal/backoff"
	"github.com/gozkd/gozkd/internal/memberid"
	"github.com/gozkd/gozkd/internal/serverlist"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server"
	"github.com/gozkd/gozkd/server/identity"
)

const (
	// scalePause is between two rounds, and bounds the question how many servers to have.
	scalePause = 2 * time.Second
	// leavePatience bounds how long a server that is stopped tries to leave the ensemble: the rest
	// of the 30 s that Kubernetes gives a pod is for the end of the server.
	leavePatience = 20 * time.Second
)

// scaling makes this server a member if there should be as many as its number, and removes it when
// it is stopped because there should be fewer: see docs/adr/0016-scaling.md.
type scaling struct {
	url     string            // says how many servers there should be; empty: the members stay
	secrets string            // the directory with the token and the authority for url
	own     serverlist.Member // this server's line
	server  *server.Server
	log     hclog.Logger
	joining sync.WaitGroup
}

func newScaling(c config.Config, s *server.Server, log hclog.Logger) *scaling {
	own, in := c.Members.Get(c.MyID)
	if !in {
		c.ScaleURL = "" // a server alone has no members
	}
	return &scaling{
		url: c.ScaleURL, secrets: "/var/run/secrets/kubernetes.io/serviceaccount", own: own, server: s,
		log: log.Named("scaling"),
	}
}

// join makes this server a member, on a goroutine, until ctx ends. One that is removed stays so.
func (s *scaling) join(ctx context.Context) {
	if s.url != "" {
		s.joining.Go(func() { s.until(ctx, true) }) // awaited by leave
	}
}

// leave removes this server if there should be fewer servers than its number. None at all means
// that the ensemble is stopped, and comes back with the same members.
func (s *scaling) leave() {
	s.joining.Wait()
	if s.url == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), leavePatience)
	defer cancel()
	s.until(ctx, false)
}

// until tries until this server is a member, with join, or need not leave. The members change one
// reconfig at a time, so that others may be in the way.
func (s *scaling) until(ctx context.Context, join bool) {
	for said := ""; ; {
		done, err := s.once(ctx, join)
		switch {
		case done || ctx.Err() != nil:
			return
		case err != nil && err.Error() != said:
			said = err.Error()
			s.log.Warn("the members are not as many as there should be yet; this server tries again",
				"joins", join, "reason", said)
		}
		backoff.Sleep(ctx, scalePause)
	}
}

// once is a round of until.
func (s *scaling) once(ctx context.Context, join bool) (done bool, err error) {
	wanted, err := s.wanted(ctx)
	number := memberid.Number(s.own.ID)
	switch belongs := uint64(wanted) >= number; {
	case err != nil:
		return false, err
	case !join && (belongs || wanted == 0):
		return true, nil
	case join && !belongs:
		return false, nil
	}
	c, err := client.Connect(ctx, client.Config{
		Servers: []string{"in-process:2181"}, Dial: func(ctx context.Context, _ string) (net.Conn, error) {
			superuser := []proto.ID{{Scheme: identity.SchemeSuper}}
			return s.server.DialAs(ctx, server.Caller{IDs: superuser, Origin: "scaling"})
		},
	})
	if err != nil {
		return false, err
	}
	defer func() { _ = c.Close() }() // otherwise its session ends by its timeout
	text, stat, err := c.Config(ctx, false)
	if err != nil {
		return false, err
	}
	members, _, err := serverlist.ParseConfig(string(text))
	if _, in := members.Get(s.own.ID); err != nil || in == join {
		return err == nil, err
	}
	next := members.With(s.own)
	if !join {
		next = slices.DeleteFunc(next, func(m serverlist.Member) bool { return m.ID == s.own.ID })
	}
	s.log.Info("the members change with the number of servers", "servers", wanted, "joins", join)
	// A complete list, because a line in a list of changes must have a port without TLS.
	_, _, err = c.Reconfig(ctx, "", "", strings.ReplaceAll(next.Text(0), "\n", ","), int64(stat.Mzxid))
	return err == nil, err
}

// wanted returns how many servers there should be: spec.replicas, which is left out if it is 0.
func (s *scaling) wanted(ctx context.Context) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, scalePause)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url, http.NoBody)
	if err != nil {
		return 0, err
	}
	transport := &http.Transport{DisableKeepAlives: true}
	if strings.HasPrefix(s.url, "https:") {
		token, err := os.ReadFile(filepath.Join(s.secrets, "token")) // which Kubernetes renews
		authority, wrong := os.ReadFile(filepath.Join(s.secrets, "ca.crt"))
		if err = cmp.Or(err, wrong); err != nil {
			return 0, err
		}
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(authority)
		transport.TLSClientConfig = &tls.Config{RootCAs: roots}
		req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	}
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return 0, err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("%s: %s", s.url, resp.Status)
	}
	var scale struct {
		Spec struct {
			Replicas int `json:"replicas"`
		} `json:"spec"`
	}
	return scale.Spec.Replicas, json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(&scale)
}
