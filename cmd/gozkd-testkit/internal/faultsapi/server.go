package faultsapi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/internal/cluster"
	"github.com/gozkd/gozkd/internal/neterr"
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
	api    *api
	http   *http.Server
	cancel context.CancelFunc // ends requests that wait
	served chan error         // gets the result of Serve
}

// Start serves requests about a cluster on a port of 127.0.0.1, a free one if port is 0.
func Start(l *cluster.Cluster, port int, logger hclog.Logger) (*Server, error) {
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return nil, neterr.ListenError("port for faults", err, "--faults-port")
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &Server{
		url: "http://" + listener.Addr().String(), api: newAPI(l, logger, "", nil), cancel: cancel, served: make(chan error, 1),
	}
	s.http = &http.Server{
		Handler: s.api.handler, ReadHeaderTimeout: headerTime, MaxHeaderBytes: 64 << 10,
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

// Arm arms the fault that the body of a POST /faults describes.
func (s *Server) Arm(body string) error {
	_, err := s.api.arm(context.Background(), &request{route: &route{body: faultBody}, body: []byte(body)})
	return err
}

// Close ends requests that wait, returns when no request is served any more, and closes the servers
// that requests started. Close must be called exactly once.
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
	return errors.Join(err, s.api.closeFurther())
}

// registry holds values by number, from 1. The zero value is empty. Safe for concurrent use.
type registry[T any] struct {
	mu     sync.Mutex
	last   int
	things map[int]T
}

// put stores the value that make returns for its number.
func (s *registry[T]) put(make func(id int) T) (id int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.things == nil {
		s.things = map[int]T{}
	}
	s.last++
	s.things[s.last] = make(s.last)
	return s.last
}

func (s *registry[T]) get(id int) (T, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	thing, ok := s.things[id]
	return thing, ok
}

// take removes and returns a value.
func (s *registry[T]) take(id int) (T, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	thing, ok := s.things[id]
	delete(s.things, id)
	return thing, ok
}

// all returns the values in the order of their numbers.
func (s *registry[T]) all() (things []T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(s.things)) {
		things = append(things, s.things[id])
	}
	return things
}

// number returns the {id} in a request's path.
func (q *request) number() (int, error) {
	id, err := strconv.Atoi(q.PathValue("id"))
	if err != nil {
		return 0, invalid("%q is not a number", q.PathValue("id"))
	}
	return id, nil
}

// named returns the value whose number is in a request's path.
func named[T any](q *request, what string, get func(id int) (T, bool)) (thing T, err error) {
	id, err := q.number()
	if err != nil {
		return thing, err
	}
	return byID(id, what, get)
}

func byID[T any](id int, what string, get func(id int) (T, bool)) (T, error) {
	thing, ok := get(id)
	if !ok {
		return thing, &statusError{http.StatusNotFound, fmt.Errorf("there is no %s %d, or not any more", what, id)}
	}
	return thing, nil
}

// route is a kind of request, and a row of the list of GET /.
type route struct {
	method, path string
	query        string // the only parameter allowed, with an example of its value
	body         string // an example; empty: no body
	answer       string // an example; empty: {}
	note         string
	waits        bool // as long as the client wants, without a timeout
	do           func(*api, context.Context, *request) (any, error)
}

const (
	memberExample  = `{"id":1,"address":"127.0.0.1:40001","state":"running","serving":true,"mode":"leader","leader":1,"zxid":"0x100000002"}`
	faultBody      = `{"kind":"dropReply","op":"create","path":"/a","times":1}`
	faultExample   = `{"id":7,"fault":"drop reply of create at /a, once","count":1,"done":true}`
	serversRequest = `{"ensemble":1,"tick":"500ms","ports":[0],"tls":true,"users":{"bob":"secret"},"down":false,` +
		`"config":{"ReadOnlyMode":true}}`
	serversExample = `{"id":1,"client":"127.0.0.1:40001","members":[{"id":1,"client":"127.0.0.1:40001"}],` +
		`"faults":"http://127.0.0.1:40004/servers/1"}`
	treeExample = `{"/":"","/a":"text","/a/b":{"base64":"AAH/"},"/a/c":null}`
)

// routes returns the table, in the order of the documentation.
func routes() []route {
	return []route{
		{"GET", "/", "", "", "", "this list, as text", false, (*api).help},
		{"GET", "/status", "", "", `{"members":[` + memberExample + `],"leader":1}`,
			"the state of the members, without waiting. state is running, paused or down; mode is leader, follower, standalone or empty; leader is 0 while none is known", false, (*api).status},
		{"GET", "/leader", "", "", memberExample, "waits until one member leads, and returns it", false, (*api).leader},
		{"POST", "/start", "", "", "", "starts all members that are down", false, toAll((*cluster.Cluster).Start)},
		{"POST", "/stop", "", "", "", "stops all members that run and are not paused", false, toAll(func(c *cluster.Cluster, _ context.Context) error { return c.Stop() })},
		{"POST", "/members/{id}/stop", "", "", memberExample, "stops it cleanly; a leader hands over its lead", false, toMember(withoutContext((*cluster.Member).Stop))},
		{"POST", "/members/{id}/start", "", "", memberExample, "starts it again with the same port and data", false, toMember((*cluster.Member).Start)},
		{"POST", "/members/{id}/restart", "", "", memberExample, "stops it if it runs, and starts it", false, toMember((*cluster.Member).Restart)},
		{"POST", "/members/{id}/kill", "", "", memberExample, "ends it like kill -9. What it acknowledged is there after the next start", false, toMember(withoutContext((*cluster.Member).Kill))},
		{"POST", "/members/{id}/pause", "", "", memberExample, "stops it like kill -STOP: connections stay open, nothing is answered, the others take it for dead", false, toMember(withoutContext((*cluster.Member).Pause))},
		{"POST", "/members/{id}/resume", "", "", memberExample, "continues a paused member", false, toMember(withoutContext((*cluster.Member).Resume))},
		{"POST", "/members/{id}/partition", "", "", memberExample, "cuts it off from clients and other members: nothing arrives, and no connection breaks", false, toMember(withoutContext((*cluster.Member).Partition))},
		{"POST", "/members/{id}/heal", "", "", memberExample, "ends its partition", false, toMember(withoutContext((*cluster.Member).Heal))},
		{"POST", "/members/{id}/disconnect", "", "", memberExample, "breaks the connections of its clients; their sessions live on", false, toMember(withoutContext((*cluster.Member).CloseConnections))},
		{"POST", "/partition", "", `{"groups":[[1],[2,3]]}`, "", "cuts the links between members of different groups; members in no group form one more. Clients still reach all members. It replaces an earlier partition", false, (*api).partition},
		{"POST", "/heal", "", "", "", "restores all links, including those of members partitioned one by one", false, (*api).heal},
		{"GET", "/sessions", "", "", `[{"id":"0x100008a3f6d0000","timeoutMs":10000,"connected":true,"member":1,"ephemerals":0}]`, "all sessions; member is 0 if a session is not connected", false, (*api).sessions},
		{"POST", "/sessions/{id}/expire", "", "", "", "ends a session as if its client had been silent for too long", false, (*api).expire},
		{"POST", "/sessions/{id}/disconnect", "", "", "", "breaks its connection; the session lives on", false, (*api).disconnect},
		{
			"POST", "/faults", "", faultBody, `{"id":7}`,
			"arms a fault for the next matching request, see below", false, (*api).arm,
		},
		{"GET", "/faults", "", "", "[" + faultExample + "]", "all faults that were not deleted", false, (*api).listFaults},
		{"GET", "/faults/{id}", "?wait=5s", "", faultExample, "how often the fault has happened. done is true when that is as often as it should, or at least once if it stays. ?wait=5s waits for that; done is false if it did not happen", true, (*api).awaitFault},
		{"DELETE", "/faults/{id}", "", "", "", "removes the fault", false, (*api).disarm},
		{"DELETE", "/faults", "", "", "", "removes all faults", false, (*api).disarmAll},
		{"POST", "/advance", "", `{"by":"1h"}`, "", "lets time pass for sessions, TTLs and containers. Connected clients count as having sent their pings", false, (*api).advance},
		{"GET", "/tree", "?path=/a", "", treeExample, "the data at ?path=/a and below; without path, of all znodes except /zookeeper", false, (*api).readTree},
		{"PUT", "/tree", "", treeExample, "", "creates these znodes and missing znodes above them, or sets their data, in one transaction; others stay", false, (*api).writeTree},
		{"POST", "/snapshot", "", "", `{"id":1}`, "takes a snapshot of all znodes", false, (*api).snapshot},
		{"POST", "/rewind", "", `{"id":1,"all":true}`, "", "restores the znodes of a snapshot: data, ACLs, ephemerals. Znodes that changed get new versions. Sessions stay as they are. With all the servers become like new ones before: faults, partitions and sessions end, and all members run", false, (*api).rewind},
		{"DELETE", "/snapshot/{id}", "", "", "", "deletes a snapshot", false, (*api).forget},
		{
			"POST", "/servers", "", serversRequest, serversExample,
			"starts a server, or an ensemble, that shares nothing with the others. Its own requests are these, below " +
				"its faults. All fields may be missing. ports has one of each member, 0 for a free one; dirs one directory " +
				"of each, otherwise the data is in memory. With tls the ports take TLS, too. users are those of SASL " +
				"DIGEST-MD5. With down the members wait for their first start. config has fields of the Go type " +
				"server.Config",
			false, (*api).startServers,
		},
		{"DELETE", "/servers/{id}", "", "", "", "closes what POST /servers started", false, (*api).closeServers},
		{
			"POST", "/certificate", "", `{"name":"alice"}`, `{"ca":"PEM","cert":"PEM","key":"PEM"}`,
			"issues a certificate of CN=name for clients of servers that were started with tls",
			false, (*api).certificate,
		},
		{"GET", "/dump", "", "", "", "members, sessions and znodes as text", false, (*api).dump},
	}
}

// help lists the routes.
func (a *api) help(context.Context, *request) (any, error) {
	var b bytes.Buffer
	// Writing to a buffer cannot fail.
	say := func(format string, args ...any) { _, _ = fmt.Fprintf(&b, format, args...) }
	say("gozkd-testkit: requests about the servers of this process (%s).\n", a.cluster.ConnectString())
	say("Requests and replies are JSON. A status other than 200 comes with {\"error\":\"why\"}. Durations look like 200ms, 5s, 1h.\n")
	for _, r := range routes() {
		say("\n%s %s%s\n    %s\n", r.method, r.path, r.query, r.note)
		if r.body != "" {
			say("    body    %s\n", r.body)
		}
		if r.answer != "" {
			say("    answer  %s\n", r.answer)
		}
	}
	say("\nA fault is {\"kind\":\"dropReply|delay|fail\", \"op\":\"create\"}, and may have \"path\":\"/a\" (this znode and below), \"session\":\"0x...\",\n")
	say("\"times\":2 (once if missing, -1 until it is deleted); a delay has \"delay\":\"200ms\", a fail \"code\":-101 or \"NoNode\".\n")
	return text(b.Bytes()), nil
}
