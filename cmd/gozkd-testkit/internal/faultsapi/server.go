package faultsapi

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/internal/cluster"
)

const (
	// headerTime bounds the header of a request, bodyTime its body.
	headerTime = 10 * time.Second
	bodyTime   = 10 * time.Second
	// closeTime bounds the wait in Close for requests in progress.
	closeTime = 5 * time.Second
)

// Server serves requests until it is closed.
type Server struct {
	url    string
	http   *http.Server
	cancel context.CancelFunc // ends requests that wait
	served chan error         // gets the result of Serve
}

// Start serves requests about a cluster on a port of 127.0.0.1. If port is 0, Start chooses a free
// port.
func Start(l *cluster.Cluster, port int, logger hclog.Logger) (*Server, error) {
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return nil, fmt.Errorf("faultsapi: port for faults: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &Server{url: "http://" + listener.Addr().String(), cancel: cancel, served: make(chan error, 1)}
	s.http = &http.Server{
		Handler: Handler(l), ReadHeaderTimeout: headerTime, MaxHeaderBytes: 64 << 10,
		BaseContext: func(net.Listener) context.Context { return ctx },
		ErrorLog:    logger.StandardLogger(&hclog.StandardLoggerOptions{ForceLevel: hclog.Warn}),
	}
	// Ended and awaited by Close.
	go func() { s.served <- s.http.Serve(listener) }()
	logger.Info("faults can be asked for", "url", s.url)
	return s, nil
}

// URL returns the base URL, without a final slash.
func (s *Server) URL() string { return s.url }

// Close ends requests that wait and returns when no request is served any more. Close must be
// called exactly once.
func (s *Server) Close() error {
	s.cancel()
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	err := s.http.Shutdown(ctx)
	if err != nil {
		err = errors.Join(fmt.Errorf("faultsapi: requests did not end: %w", err), s.http.Close())
	}
	if served := <-s.served; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, fmt.Errorf("faultsapi: %w", served))
	}
	return err
}
