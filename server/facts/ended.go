package facts

import (
	"cmp"
	"net"
	"slices"
	"sort"
	"strings"
)

// How a session ended, or was refused to a client, in EndedSession.How.
const (
	Closed        = "closed"         // by its client, with closeSession
	Expired       = "expired"        // by a server; EndedSession.Reason says why
	Forgotten     = "forgotten"      // a local session, by the only server that knew it
	WrongPassword = "wrong password" // refused to a client: the session may live
	Over          = "over"           // refused to a client: it ended before, or never was
)

// Why a server ended a session, in EndedSession.Reason.
const (
	BySilence       = "silence"
	ByAdministrator = "administrator"
)

// Who ended a connection, in EndedClient.ClosedBy. Empty: unknown.
const (
	ClientSide = "client"  // its end of the connection was closed
	ServerSide = "server"  // EndedClient.Why says why
	Network    = "network" // the connection broke; EndedClient.Why is the system's error
)

// The kinds of incidents on a server, in Incident.Kind.
const (
	Pause        = "pause"                            // the process stood still
	SlowDisk     = "slow disk"                        // the log's disk took long for a sync
	NoCommit     = "no commit"                        // the leader could not commit
	NoLeader     = "no leader"                        // the server knew no leader
	NewLeader    = "new leader"                       // another server began to lead
	OutOfTouch   = "out of touch with the leader"     // the leader did not answer the server's reports
	ClockMoved   = "clock moved"                      // by the embedding program; it counts for sessions
	ClockStepped = "clock step, which does not count" // the system's clock was set
	TurnedAway   = "turned away"                      // the session's client came and was closed without an answer
)

// EndedSession is the story of a session that ended, or that was refused to a client, as far as the
// servers in Tellers know it. Numbers of servers are -1 for the only server. All durations are in
// milliseconds, and count backwards from the end.
type EndedSession struct {
	Session   string `json:"session"`        // 0x and hexadecimal digits
	EndedMs   int64  `json:"ended_ms"`       // Unix time
	Zxid      string `json:"zxid,omitempty"` // of the end; empty: only Tellers know of it
	How       string `json:"how"`
	Reason    string `json:"reason,omitempty"` // of Expired; empty: Tellers do not know it
	TimeoutMs int64  `json:"timeout_ms,omitempty"`
	Decider   int    `json:"decider"` // the server that decided
	Server    int    `json:"server"`  // the server that the client was connected to last
	Tellers   []int  `json:"tellers"`
	Moves     int    `json:"moves,omitempty"` // between servers, as far as Tellers have seen them
	// Ephemerals were deleted with the session. MoreEphemerals are not in the list.
	Ephemerals     []string     `json:"ephemerals,omitempty"`
	MoreEphemerals int          `json:"more_ephemerals,omitempty"`
	Client         *EndedClient `json:"client,omitempty"` // nil: Tellers do not know its last connection
	Incidents      []Incident   `json:"incidents,omitempty"`
	// Server began to serve this long before the end, and the client had not connected to it since.
	// 0: the client had, or Tellers do not know.
	UnseenMs int64 `json:"unseen_ms,omitempty"`
	// Story is the sentence of Verdict, for readers of the JSON.
	Story string `json:"story,omitempty"`
	Cause Cause  `json:"cause,omitempty"`
}

// EndedClient has the facts that a server knows about the last connection of a session.
type EndedClient struct {
	TimeoutMs  int64    `json:"-"` // of the session
	Address    string   `json:"address"`
	Identities []string `json:"identities,omitempty"` // as Connection.Identities
	LastOp     string   `json:"last_op,omitempty"`    // as Connection.LastOp
	SilentMs   int64    `json:"silent_ms"`            // since the client was last heard from
	LongestMs  int64    `json:"longest_silence_ms"`   // before that
	// PingEveryMs is the average of the Pings intervals between pings without other requests
	// between, except for the longest.
	Pings       int   `json:"pings,omitempty"`
	PingEveryMs int64 `json:"ping_every_ms,omitempty"`
	Open        bool  `json:"open"` // the connection was open at the end
	// Probed: the server's system probed the client's machine, or a proxy before it, during the
	// silence. The machine confirmed something AnsweredMs before the end, and no probe since;
	// Unanswered counts those.
	Probed     bool   `json:"probed,omitempty"`
	AnsweredMs int64  `json:"answered_ms,omitempty"`
	Unanswered int    `json:"unanswered,omitempty"`
	ClosedMs   int64  `json:"closed_ms,omitempty"`
	ClosedBy   string `json:"closed_by,omitempty"`
	Why        string `json:"why,omitempty"`
}

// Incident is an incident on a server within the last timeout of a session.
type Incident struct {
	Server int    `json:"server"`
	Kind   string `json:"kind"`
	AgoMs  int64  `json:"ago_ms"` // from its beginning to the end of the session
	Ms     int64  `json:"ms"`     // how long it took
	Times  int    `json:"times,omitempty"`
	Why    string `json:"why,omitempty"`
}

// JoinEnded joins the stories that several servers tell of the same ends, and returns the newest
// first. The argument and the result share the data that fields refer to.
func JoinEnded(stories []EndedSession) (all []EndedSession) {
	byEnd := make(map[[2]string]int)
	for i := range stories {
		o := &stories[i]
		n, known := byEnd[[2]string{o.Session, o.Zxid}]
		if o.Zxid == "" || !known {
			byEnd[[2]string{o.Session, o.Zxid}] = len(all)
			all = append(all, *o)
			continue
		}
		e := &all[n]
		told := func(teller int) bool { return slices.Contains(e.Tellers, teller) }
		if slices.ContainsFunc(o.Tellers, told) { // a server that was asked twice
			continue
		}
		e.Tellers, e.Incidents = slices.Concat(e.Tellers, o.Tellers), slices.Concat(e.Incidents, o.Incidents)
		e.Moves, e.UnseenMs, e.Reason = max(e.Moves, o.Moves), max(e.UnseenMs, o.UnseenMs), cmp.Or(e.Reason, o.Reason)
		e.Client = cmp.Or(e.Client, o.Client)
		e.Cause, e.Story = e.Verdict()
	}
	sort.SliceStable(all, func(i, j int) bool { return all[i].EndedMs > all[j].EndedMs })
	return all
}

// Matches reports whether a story is about a session, a client and an ephemeral znode, of those
// that are not empty. session may be several, with commas between; an address may lack the port.
func (e *EndedSession) Matches(session, address, path string) bool {
	digits := func(id string) string {
		return strings.TrimLeft(strings.TrimPrefix(strings.ToLower(id), "0x"), "0")
	}
	is := func(id string) bool { return digits(id) == digits(e.Session) }
	from := ""
	if e.Client != nil {
		from = e.Client.Address
	}
	host, _, _ := net.SplitHostPort(from)
	return (session == "" || slices.ContainsFunc(strings.Split(session, ","), is)) &&
		(address == "" || address == from || address == host) && (path == "" || slices.Contains(e.Ephemerals, path))
}
