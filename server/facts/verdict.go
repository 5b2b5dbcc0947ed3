package facts

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Cause is why a session ended. Verdict names a cause only with its evidence.
type Cause string

// The causes.
const (
	ClientClosed    Cause = "the client closed the session"
	Administrator   Cause = "an administrator ended the session"
	PasswordRefused Cause = "the client has a wrong password"
	SessionOver     Cause = "the session was over before"
	ServerForgot    Cause = "the server forgot its local sessions"
	TimeMoved       Cause = "the program moved the server's clock"
	ClientRefused   Cause = "the server turned the client away"
	ServerPaused    Cause = "the server stood still"
	ServerCutOff    Cause = "the server was out of touch with the leader"
	ServerRestarted Cause = "the client did not come back after a restart of the server"
	ServerClosed    Cause = "the server closed the connection, and the client did not come back"
	ClientLeft      Cause = "the client's side closed the connection, and the client did not come back"
	ConnectionBroke Cause = "the connection broke, and the client did not come back"
	ProcessSilent   Cause = "the client's process stood still, while its machine or a proxy answered"
	MachineSilent   Cause = "the client's machine stood still, or the network was cut"
	ClientSilent    Cause = "the client's process or machine stood still, or the network was cut"
	UnknownCause    Cause = "unknown"
)

// Verdict returns the most likely cause of the end and the story in one sentence. It is a function
// of the other fields alone, and says so if they do not show a cause.
func (e *EndedSession) Verdict() (Cause, string) {
	var known []string // clauses
	if c := e.Client; c != nil && e.How == Expired && e.Reason != ByAdministrator {
		known = append(known, fmt.Sprintf("silent for %s with a timeout of %s", seconds(c.SilentMs),
			strconv.FormatFloat(float64(e.TimeoutMs)/1000, 'f', -1, 64)+" s"))
		if c.Pings >= minPings {
			known = append(known, "its pings had come every "+seconds(c.PingEveryMs))
		}
		if c.LongestMs > max(100, 2*c.PingEveryMs) {
			known = append(known, "its longest silence before was "+seconds(c.LongestMs))
		}
		known = append(known, e.incidents())
		if c.Open {
			known = append(known, "the connection stayed open")
		}
	}
	if e.Moves > 0 {
		known = append(known, "moves between servers: "+strconv.Itoa(e.Moves))
	}
	cause, words := e.judge()
	return cause, e.subject() + ": " + strings.TrimPrefix(strings.Join(known, "; ")+": ", ": ") + words
}

// minProbes is how many unanswered probes show that nobody answers: the last one may be under way.
const minProbes = 2

// minPings is from how many intervals on pings have a rhythm.
const minPings = 2

func (e *EndedSession) subject() string {
	text := "session " + e.Session
	if c := e.Client; c != nil {
		text += " of " + strings.Join(append([]string{c.Address}, c.Identities...), ", ")
	}
	switch e.How {
	case WrongPassword, Over:
		text += " was refused"
	case Forgotten:
		text += " was forgotten"
	default:
		text += " ended"
	}
	return text + " at " + time.UnixMilli(e.EndedMs).UTC().Format("2006-01-02T15:04:05.000Z")
}

// incidents says how the server of the last connection was. It had that connection, so it ran.
func (e *EndedSession) incidents() string {
	var all []string
	for _, i := range e.Incidents {
		if i.Kind == TurnedAway { // judge says so
			continue
		}
		text := fmt.Sprintf("%s: %s, %s before", Name(i.Server), i.Kind, seconds(i.AgoMs))
		if i.Ms > 0 {
			text += ", for " + seconds(i.Ms)
		}
		all = append(all, text)
	}
	if all == nil {
		return Name(e.Server) + " was well"
	}
	return strings.Join(all, "; ")
}

func (e *EndedSession) judge() (Cause, string) {
	c, at, moved := e.Client, Name(e.Server), int64(0)
	for _, i := range e.Incidents { // the clocks of all members may move at once
		if i.Kind == ClockMoved {
			moved = max(moved, e.sum(ClockMoved, i.Server))
		}
	}
	away := slices.IndexFunc(e.Incidents, func(i Incident) bool { return i.Kind == TurnedAway })
	switch {
	case e.How == Closed:
		return ClientClosed, "its client closed it"
	case e.How == WrongPassword:
		return PasswordRefused, "the password was wrong. The client was told that its session was over; it lived on"
	case e.How == Over:
		return SessionOver, "it was over, or had never been, when the client came back with it"
	case e.How == Forgotten:
		return ServerForgot, at + " lost touch with the leader, and forgot the sessions that no other server knows"
	case e.Reason == ByAdministrator:
		return Administrator, "an administrator, or the embedding program, ended it at " + Name(e.Decider)
	case e.Reason == "":
		return UnknownCause, Name(e.Decider) + " decided that: ask it for the reason, unless it has restarted since"
	case moved > 0 && (c == nil && moved >= e.TimeoutMs || c != nil && c.SilentMs-moved < e.TimeoutMs):
		return TimeMoved, "the program that embeds the server moved its clock ahead by " + seconds(moved)
	case away >= 0:
		i := e.Incidents[away]
		return ClientRefused, fmt.Sprintf("its client came back to %s, and was turned away (times: %d): %s",
			Name(i.Server), i.Times, i.Why)
	case c == nil && !slices.Contains(e.Tellers, e.Server):
		return UnknownCause, at + " had its connection last: ask that server"
	case c == nil && e.UnseenMs > 0:
		return ServerRestarted, at + " had started " + seconds(e.UnseenMs) + " before" + notBack + " to any server"
	case c == nil:
		return UnknownCause, "no server remembers its connection: the cause is unknown"
	case c.Open:
		return e.judgeOpen(c, at)
	}
	ended := " " + seconds(c.ClosedMs) + " before"
	switch paused := e.paused(c); {
	case paused > 0:
		return ServerPaused, stoodStill(at, paused)
	case c.ClosedBy == ClientSide:
		return ClientLeft, "the client's side closed the connection" + ended + " without closing the session" + notBack +
			", as if its process had ended"
	case c.ClosedBy == ServerSide:
		return ServerClosed, at + " closed its connection" + ended + " (" + c.Why + ")" + notBack
	case c.ClosedBy == Network:
		return ConnectionBroke, "its connection broke" + ended + " (" + c.Why + ")" + notBack
	}
	return UnknownCause, "its connection ended" + ended + ": the cause is unknown"
}

const notBack = ", and the client did not come back"

// judgeOpen is judge for a session that expired while its connection was open.
func (e *EndedSession) judgeOpen(c *EndedClient, at string) (Cause, string) {
	paused, untold := e.paused(c), e.sum(OutOfTouch, e.Server)
	switch heard := c.SilentMs < e.TimeoutMs; {
	case paused > 0:
		return ServerPaused, stoodStill(at, paused)
	case heard && untold >= e.TimeoutMs:
		return ServerCutOff, at + " heard the client, and was out of touch with the leader for " + seconds(untold)
	case heard:
		return UnknownCause, at + " heard the client; why " + Name(e.Decider) + " did not is unknown"
	case c.Probed && c.Unanswered >= minProbes:
		return MachineSilent, fmt.Sprintf("the client's machine has not answered the last %d probes: "+
			"it stood still, or the network to it was cut", c.Unanswered)
	case c.Probed && c.Unanswered == 0 && 2*c.AnsweredMs < c.SilentMs:
		return ProcessSilent, "the client's machine, or a proxy before it, answered probes: the client's process stood still"
	}
	return ClientSilent, "the client's process or machine stood still, or the network to it was cut; " +
		at + " cannot tell which"
}

// paused returns for how long the server of the connection stood still, if that explains the end:
// until the silence or the connection ended, or, if it has heard the client since, for a whole
// timeout. After an earlier pause, the server would have read the requests that had come meanwhile.
func (e *EndedSession) paused(c *EndedClient) (ms int64) {
	if c.SilentMs < e.TimeoutMs {
		if ms := e.sum(Pause, e.Server); ms >= e.TimeoutMs {
			return ms
		}
		return 0
	}
	var closed int64
	if !c.Open {
		closed = c.ClosedMs
	}
	for _, i := range e.Incidents {
		until := i.AgoMs - i.Ms
		if i.Kind == Pause && i.Server == e.Server && until <= closed+max(1000, c.PingEveryMs) {
			ms += max(0, min(i.AgoMs, c.SilentMs)-max(until, closed))
		}
	}
	if c.SilentMs-ms < e.TimeoutMs {
		return ms
	}
	return 0
}

func stoodStill(server string, ms int64) string {
	return server + " stood still for " + seconds(ms) + ", and could not hear its clients meanwhile"
}

// sum returns for how long a kind of incident lasted on a server.
func (e *EndedSession) sum(kind string, server int) (ms int64) {
	for _, i := range e.Incidents {
		if i.Kind == kind && i.Server == server {
			ms += i.Ms
		}
	}
	return ms
}

// Name returns the name of the server with a number, as in EndedSession.
func Name(server int) string {
	if server < 0 {
		return "the server"
	}
	return "server " + strconv.Itoa(server)
}

func seconds(ms int64) string { return fmt.Sprintf("%.1f s", float64(ms)/1000) }
