package main

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/must"
)

// webAttacks use REST and the explorer's requests, as callers on this machine who may write.
func webAttacks() []*attack {
	keys := map[string]string{"gozkd.web": "write", "maxClientCnxns": "0"}
	web := func(name, what string, run func(*attacker)) *attack {
		return &attack{name: "web-" + name, what: what, admin: true, web: true, keys: keys, run: run}
	}
	return []*attack{
		web("unread", "gets of a 1 MB znode by REST on 250 connections that do not read", webUnread),
		web("streams", "2,000 streams of events, half of which are not read, beside writes by REST", webStreams),
		web("children", "pages with Stats of a znode with 20,000 children, 64 connections", webChildren),
		web("bombs", "60 kB of zstd that become 2 GB, 64 connections", webBombs),
		web("multis", "multis of 1 MB of JSON, 64 connections", webMultis),
		web("search", "searches by regular expression through 100 MB of data, 16 connections", webSearch),
		web("guesses", "logins with wrong passwords, 64 connections", webGuesses),
	}
}

// webRequest sends a request and returns the status; 0 after an error.
func (a *attacker) webRequest(method, path string, body []byte, headers ...string) int {
	status, _, err := a.request(method, path, body, headers...)
	if err != nil {
		return 0
	}
	return status
}

// mustCreate creates children of the root.
func (a *attacker) mustCreate(data []byte, names ...string) {
	a.mustAnswer()
	for _, name := range names {
		if status := a.webRequest(http.MethodPost, "/znodes/v2/?name="+name, data); status != http.StatusCreated {
			must.Failf("the znode was not created: status %d", status)
		}
	}
}

// askOnly sends a request on a connection, and does not read the answer.
func (a *attacker) askOnly(request string, times int) {
	a.withConn(a.Admin, retry, func(nc *net.TCPConn) {
		if _, err := nc.Write([]byte(strings.Repeat(request, times))); err == nil {
			a.sleep(10 * time.Second)
		}
	})
}

func webUnread(a *attacker) {
	a.mustCreate(bytes.Repeat([]byte("x"), 1<<20-200), "large")
	a.ready()
	a.each(250, func(int) { a.askOnly("GET /znodes/v2/large HTTP/1.1\r\nHost: a\r\n\r\n", 10) })
}

func webStreams(a *attacker) {
	a.mustCreate(nil, "a")
	a.ready()
	a.each(1000, func(int) { a.askOnly("GET /znodes/v2/?watch=recursive HTTP/1.1\r\nHost: a\r\n\r\n", 1) })
	a.each(1000, func(i int) {
		a.webRequest(http.MethodGet, fmt.Sprintf("/znodes/v2/a/%d?watch=recursive", i), nil)
	})
	a.each(4, func(int) { a.webRequest(http.MethodPut, "/znodes/v2/a", []byte("x"), "If-Match", "*") })
}

func webChildren(a *attacker) {
	a.mustCreate(nil, "p")
	for from := 0; from < 20_000; from += 500 {
		var multi strings.Builder
		for i := range 500 {
			fmt.Fprintf(&multi, `,{"op":"create","path":"/p/child-%08d"}`, from+i)
		}
		if status := a.webRequest(http.MethodPatch, "/znodes/v2/", []byte("["+multi.String()[1:]+"]")); status != http.StatusOK {
			must.Failf("children were not created: status %d", status)
		}
	}
	a.ready()
	a.each(64, func(int) { a.webRequest(http.MethodGet, "/znodes/v2/p?children&stat&limit=1000", nil) })
}

func webBombs(a *attacker) {
	// A frame with a window of 8 MiB, and blocks of 4 bytes that become 128 KiB each.
	bomb := append([]byte{0x28, 0xb5, 0x2f, 0xfd, 0, 13 << 3}, bytes.Repeat([]byte{2, 0, 16, 0}, 15_000)...)
	a.mustAnswer()
	a.ready()
	a.each(64, func(int) { a.webRequest(http.MethodPost, "/ui/api/decode?as=zstd", bomb) })
}

func webMultis(a *attacker) {
	multi := []byte("[" + strings.Repeat(`{"op":"check","path":"/","version":-1},`, 26_000) + `{"op":"check","path":"/none","version":1}]`)
	a.mustAnswer()
	a.ready()
	a.each(64, func(int) { a.webRequest(http.MethodPatch, "/znodes/v2/", multi) })
}

func webSearch(a *attacker) {
	names := make([]string, 100)
	for i := range names {
		names[i] = fmt.Sprintf("n%d", i)
	}
	a.mustCreate(bytes.Repeat([]byte("ab"), 1<<19-100), names...)
	a.ready()
	a.each(16, func(int) {
		a.webRequest(http.MethodGet, "/ui/api/search?regexp&content=(a%7Cb)*(a%7Cb)%7B100%7Dc", nil)
	})
}

func webGuesses(a *attacker) {
	a.mustAnswer()
	a.ready()
	a.each(64, func(i int) {
		status := a.webRequest(http.MethodPost, "/ui/api/login", fmt.Appendf(nil, `{"user":"u%d","password":"x"}`, i))
		if status == http.StatusOK {
			a.breach("a login with a wrong password")
		}
	})
}
