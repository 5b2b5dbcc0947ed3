package faultsapi

import (
	"bytes"
	"context"
	"fmt"

	"github.com/gozkd/gozkd/internal/cluster"
)

// route is a kind of request: a row of docs/reference/faults-http.md.
type route struct {
	method, path string
	query        string // the one parameter that it may have
	body         string // an example; empty: none
	answer       string // an example; empty: {}
	note         string
	waits        bool // as long as the client wants
	do           func(*api, context.Context, *request) (any, error)
}

const (
	memberExample = `{"id":1,"address":"127.0.0.1:40001","state":"running","serving":true,"mode":"leader","leader":1,"zxid":"0x100000002"}`
	faultExample  = `{"id":7,"fault":"drop reply of create at /a, once","count":1,"done":true}`
	treeExample   = `{"/":"","/a":"text","/a/b":{"base64":"AAH/"},"/a/c":null}`
)

// routes is the table, in the order of the documentation.
func routes() []route {
	return []route{
		{"GET", "/", "", "", "", "this list, as text", false, (*api).help},
		{"GET", "/status", "", "", `{"members":[` + memberExample + `],"leader":1}`,
			"how the members are, at once. state is running, paused or down; mode is leader, follower, standalone, or empty; leader is 0 while none is known", false, (*api).status},
		{"GET", "/leader", "", "", `{"id":1,"address":"127.0.0.1:40001"}`, "waits until one member leads", false, (*api).leader},
		{"POST", "/members/{id}/stop", "", "", memberExample, "closes it in an orderly way: a leader hands over", false, toMember(withoutContext((*cluster.Member).Stop))},
		{"POST", "/members/{id}/start", "", "", memberExample, "starts it again, with the same port and the same data", false, toMember((*cluster.Member).Start)},
		{"POST", "/members/{id}/restart", "", "", memberExample, "stop, if it runs, and start", false, toMember((*cluster.Member).Restart)},
		{"POST", "/members/{id}/kill", "", "", memberExample, "ends it like kill -9. What it acknowledged is there when it is started again", false, toMember(withoutContext((*cluster.Member).Kill))},
		{"POST", "/members/{id}/pause", "", "", memberExample, "makes it stand still: connections stay, nobody is answered, the others take it for dead", false, toMember(withoutContext((*cluster.Member).Pause))},
		{"POST", "/members/{id}/resume", "", "", memberExample, "lets it go on", false, toMember(withoutContext((*cluster.Member).Resume))},
		{"POST", "/members/{id}/partition", "", "", memberExample, "cuts it off from clients and other members: nothing arrives, nothing breaks", false, toMember(withoutContext((*cluster.Member).Partition))},
		{"POST", "/members/{id}/heal", "", "", memberExample, "takes that back", false, toMember(withoutContext((*cluster.Member).Heal))},
		{"POST", "/members/{id}/disconnect", "", "", memberExample, "breaks the connections of its clients; their sessions live on", false, toMember(withoutContext((*cluster.Member).CloseConnections))},
		{"POST", "/partition", "", `{"groups":[[1],[2,3]]}`, "", "cuts the links between members of different groups; members that are in none form one more. Clients reach all members. It replaces an earlier one", false, (*api).partition},
		{"POST", "/heal", "", "", "", "mends all links, those of members that were cut off by themselves too", false, (*api).heal},
		{"GET", "/sessions", "", "", `[{"id":"0x100008a3f6d0000","timeoutMs":10000,"connected":true,"member":1,"ephemerals":0}]`, "all sessions; member is 0 for one that is not connected", false, (*api).sessions},
		{"POST", "/sessions/{id}/expire", "", "", "", "ends a session as if its client had been silent for too long", false, (*api).expire},
		{"POST", "/sessions/{id}/disconnect", "", "", "", "breaks its connection; the session lives on", false, (*api).disconnect},
		{"POST", "/faults", "", `{"kind":"dropReply","op":"create","path":"/a","times":1}`, `{"id":7}`, "lets the next such request go wrong, see below", false, (*api).arm},
		{"GET", "/faults", "", "", "[" + faultExample + "]", "all faults that were asked for and not deleted", false, (*api).listFaults},
		{"GET", "/faults/{id}", "wait", "", faultExample, "how often it happened; done when that is as often as it shall, or once if it stays. With ?wait=5s it waits for that, and answers with done false if it does not come", true, (*api).awaitFault},
		{"DELETE", "/faults/{id}", "", "", "", "takes the fault back, if it did not happen yet", false, (*api).disarm},
		{"DELETE", "/faults", "", "", "", "takes all back", false, (*api).disarmAll},
		{"POST", "/advance", "", `{"by":"1h"}`, "", "lets time pass for sessions, TTLs and containers. Clients that are connected count as having sent their pings", false, (*api).advance},
		{"GET", "/tree", "path", "", treeExample, "the data at ?path=/a and below; without it, of all znodes but /zookeeper", false, (*api).readTree},
		{"PUT", "/tree", "", treeExample, "", "creates these znodes, and those above them, or sets their data, all at once; others stay", false, (*api).writeTree},
		{"POST", "/snapshot", "", "", `{"id":1}`, "remembers all znodes as they are", false, (*api).snapshot},
		{"POST", "/rewind", "", `{"id":1}`, "", "puts them back: data, ACLs, ephemerals. What has to be written gets new versions. Sessions stay as they are", false, (*api).rewind},
		{"DELETE", "/snapshot/{id}", "", "", "", "forgets a snapshot", false, (*api).forget},
		{"GET", "/dump", "", "", "", "members, sessions and znodes, as text for people", false, (*api).dump},
	}
}

// help says in words what docs/reference/faults-http.md says in a table.
func (a *api) help(context.Context, *request) (any, error) {
	var b bytes.Buffer
	say := func(format string, args ...any) { _, _ = fmt.Fprintf(&b, format, args...) } // to a buffer
	say("gozkd: what can be done to the servers of this process (%s).\n", a.cluster.ConnectString())
	say("JSON in and out. A status other than 200 comes with {\"error\":\"why\"}. Durations are like 200ms, 5s, 1h.\n")
	for _, r := range routes() {
		say("\n%s %s%s\n    %s\n", r.method, r.path, r.queryExample(), r.note)
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

func (r *route) queryExample() string {
	switch r.query {
	case "path":
		return "?path=/a"
	case "wait":
		return "?wait=5s"
	}
	return ""
}
