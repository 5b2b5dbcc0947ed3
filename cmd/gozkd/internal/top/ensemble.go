package top

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/gozkd/gozkd/internal/memberid"
	"github.com/gozkd/gozkd/internal/probe"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server/facts"
)

const maxTrend = 240

// ensemble holds everything that is known about the members. It is not safe for concurrent use.
type ensemble struct {
	now     time.Time // of the newest sample
	members []*member // in the order of the roster
}

type member struct {
	Entry
	hasSample bool   // there is a sample
	last      Sample // the newest sample
	since     time.Time
	rates     Rates
	// trend holds the rates of the last rounds, the newest last.
	trend []Rates
	// clients are the connections of the newest sample.
	clients []session
}

type session struct {
	probe.Connection
	Member *member
	// Requests is in packets per second; NaN if unknown.
	Requests float64
}

// up reports whether the member answered and serves.
func (m *member) up() bool { return m.hasSample && m.last.Err == nil }

// unasked reports whether the member cannot be asked, because its client port is unknown.
func (m *member) unasked() bool { return errors.Is(m.last.Err, errUnknownPort) }

func (e *ensemble) observe(r Report) {
	if r.Sample.At.After(e.now) {
		e.now = r.Sample.At
	}
	known := e.members
	e.members = make([]*member, 0, len(r.Roster))
	for _, entry := range r.Roster {
		m := &member{Entry: entry, rates: noRates()}
		if i := slices.IndexFunc(known, func(k *member) bool { return k.Address == entry.Address }); i >= 0 {
			m = known[i]
			m.Entry = entry
		}
		e.members = append(e.members, m)
	}
	// A member that has just left the roster is ignored.
	if i := slices.IndexFunc(e.members, func(m *member) bool { return m.Address == r.Sample.Address }); i >= 0 {
		e.members[i].observe(r.Sample)
	}
}

func (m *member) observe(s Sample) {
	if !m.hasSample || (m.last.Err == nil) != (s.Err == nil) {
		m.since = s.At
	}
	before := m.last
	m.rates = noRates()
	if m.hasSample {
		m.rates = ratesBetween(&before, &s)
	}
	m.clients = clientsBetween(m, &before, &s)
	m.hasSample, m.last = true, s
	m.trend = append(m.trend, m.rates)
	if over := len(m.trend) - maxTrend; over > 0 {
		m.trend = slices.Delete(m.trend, 0, over)
	}
}

// clientsBetween returns the connections of b with their rates since a.
func clientsBetween(m *member, a, b *Sample) []session {
	type key struct {
		address string
		session proto.SessionID
		since   int64
	}
	of := func(c *probe.Connection) key { return key{c.Client, c.Session, c.SinceMs} }
	before := make(map[key]int64, len(a.Clients))
	for i := range a.Clients {
		before[of(&a.Clients[i])] = a.Clients[i].Received
	}
	elapsed := b.At.Sub(a.At)
	list := make([]session, len(b.Clients))
	for i := range b.Clients {
		c := &b.Clients[i]
		list[i] = session{Connection: *c, Member: m, Requests: unknown}
		// A lower count means that crst reset the counter.
		if was, ok := before[of(c)]; ok && elapsed >= minInterval && c.Received >= was {
			list[i].Requests = float64(c.Received-was) / elapsed.Seconds()
		}
	}
	return list
}

// serving returns the members that are up.
func (e *ensemble) serving() []*member {
	return slices.DeleteFunc(slices.Clone(e.members), func(m *member) bool { return !m.up() })
}

// leaders returns the members that claim to lead.
func (e *ensemble) leaders() []*member {
	return slices.DeleteFunc(e.serving(), func(m *member) bool { return m.last.State.Mode != facts.Leader })
}

// leader returns the leader, that of the newer epoch if two claim to lead, or nil.
func (e *ensemble) leader() *member {
	list := e.leaders()
	if len(list) == 0 {
		return nil
	}
	return slices.MaxFunc(list, func(a, b *member) int { return cmp.Compare(a.last.State.Zxid, b.last.State.Zxid) })
}

// peer returns what the members that answered know of a member.
func (e *ensemble) peer(m *member) probe.Peer { return probe.PeerOf(m.ID, e.answers()) }

func (e *ensemble) answers() (answers []probe.Monitor) {
	for _, m := range e.members {
		answers = append(answers, m.last.Monitor) // nil: nothing is known
	}
	return answers
}

// followed returns the leader or, if the leader does not answer, the member that others follow.
func (e *ensemble) followed() *member {
	if l := e.leader(); l != nil {
		return l
	}
	for _, m := range e.members {
		if !m.up() && e.peer(m).Role == facts.Leader {
			return m
		}
	}
	return nil
}

func (e *ensemble) zxid() (newest proto.Zxid) {
	for _, m := range e.serving() {
		newest = max(newest, m.last.State.Zxid)
	}
	return newest
}

// lag is how far a member is behind the leader, in transactions or log entries.
type lag struct {
	n     int64
	known bool
	// estimated: not the leader's count, but the difference of zxids read at different times.
	estimated bool
}

func (e *ensemble) lag(m *member) lag {
	leader := e.leader()
	if leader == nil || leader == m {
		return lag{}
	}
	if n, ok := leader.last.Monitor.Int("gozkd_peer_" + strconv.FormatUint(memberid.Number(m.ID),
		10) + "_lag_entries"); ok && m.ID != 0 {
		return lag{n: n, known: true}
	}
	if !m.up() || leader.last.State.Gozkd() && leader.last.MonitorErr == nil {
		return lag{} // the leader, a gozkd, does not know the lag
	}
	ours, theirs := m.last.State.Zxid, leader.last.State.Zxid
	if ours.Epoch() != theirs.Epoch() {
		return lag{} // the counter restarted
	}
	return lag{n: max(0, int64(theirs-ours)), known: true, estimated: true}
}

// totals are sums over the members that serve. NaN and -1 mean unknown.
type totals struct {
	up int // members that answered
	// serve also counts members that did not answer, but serve according to the others (Peer.Up).
	// unknown counts members of which nothing is known.
	serve, unknown                                       int
	rates                                                Rates
	connections, outstanding, watches, znodes, dataBytes int64
}

func (e *ensemble) totals() totals {
	t := totals{rates: noRates(), watches: -1, dataBytes: -1}
	var weighted, requests float64
	for _, m := range e.members {
		if m.unasked() {
			if p := e.peer(m); p.Up() {
				t.serve++
			} else if p.Unknown() {
				t.unknown++
			}
		}
		if !m.up() {
			continue
		}
		st := &m.last.State
		t.up, t.serve = t.up+1, t.serve+1
		t.connections += st.Connections
		t.outstanding += st.Outstanding
		t.znodes = max(t.znodes, st.Znodes)
		t.rates.Requests = sum(t.rates.Requests, m.rates.Requests)
		t.rates.Reads, t.rates.Writes = sum(t.rates.Reads, m.rates.Reads), sum(t.rates.Writes, m.rates.Writes)
		if n := m.rates.Reads + m.rates.Writes; !math.IsNaN(m.rates.LatencyMs) {
			weighted, requests = weighted+n*m.rates.LatencyMs, requests+n
		}
		if n, ok := m.last.Monitor.Int("watch_count"); ok {
			t.watches = max(t.watches, 0) + n
		}
		if n, ok := m.last.Monitor.Int("approximate_data_size"); ok {
			t.dataBytes = max(t.dataBytes, n)
		}
	}
	t.rates.LatencyMs = mean(requests, weighted)
	return t
}

// problems returns what is wrong with the ensemble, one sentence each.
func (e *ensemble) problems() []string {
	var list []string
	var standalone, impaired []string
	fenced := ""
	for _, m := range e.serving() {
		switch m.last.State.Mode {
		case facts.Standalone:
			standalone = append(standalone, m.Address)
		case facts.ReadOnly:
			impaired = append(impaired, m.Address+": serves only reads: "+m.last.Monitor.WhyReadOnly())
		}
		fenced = cmp.Or(fenced, m.last.State.Archive)
		for _, why := range []string{m.last.State.Outside, m.last.State.Certificates} {
			if why != "" {
				impaired = append(impaired, m.Address+": "+why)
			}
		}
	}
	leaders := e.leaders()
	switch {
	case slices.ContainsFunc(e.members, func(m *member) bool { return !m.hasSample }):
		// Not all members have been asked yet.
	case len(leaders) == 0 && e.followed() != nil:
		// The others follow a member that does not answer.
	case len(leaders) == 0 && e.totals().unknown > 0:
		list = append(list, "which member leads is unknown: name all with -server")
	case len(leaders) == 0 && len(standalone) == 0:
		list = append(list, "no leader: writes are not possible")
	case len(leaders) > 1:
		names := make([]string, len(leaders))
		for i, m := range leaders {
			names[i] = m.Address
		}
		list = append(list, fmt.Sprintf("%d members claim to lead: %s", len(leaders), strings.Join(names, ", ")))
	case len(standalone) > 0 && len(e.members) > 1:
		list = append(list, "standalone, not in one ensemble with the others: "+strings.Join(standalone, ", "))
	}
	list = append(list, impaired...)
	for _, text := range []string{probe.DataStatus(e.answers()), fenced} {
		if text != "" {
			list = append(list, text)
		}
	}
	if note, bad := e.archive(); bad {
		list = append(list, note)
	}
	return list
}

// clients returns all connections with a session, and for each cause why some may be missing.
func (e *ensemble) clients() (list []session, missing []string) {
	for _, m := range e.members {
		list = append(list, m.clients...)
	}
	return list, e.missing(func(s *Sample) error { return s.ClientsErr })
}

// missing returns why information is missing and where, by the error that of selects.
func (e *ensemble) missing(of func(*Sample) error) []string {
	causes, members := e.groupBy(func(m *member) (string, bool) {
		err := of(&m.last)
		if err == nil {
			return "", false
		}
		return probe.Cause(err), true
	})
	up := e.totals().up
	for i, cause := range causes {
		if len(members[cause]) < up {
			causes[i] = "member " + strings.Join(members[cause], ", ") + ": " + cause
		}
	}
	return causes
}

// groupBy returns the values of the members that serve, in their order, and the members of each.
func (e *ensemble) groupBy(of func(*member) (value string, ok bool)) (values []string, members map[string][]string) {
	members = make(map[string][]string)
	for _, m := range e.serving() {
		value, ok := of(m)
		if !ok {
			continue
		}
		if members[value] == nil {
			values = append(values, value)
		}
		members[value] = append(members[value], m.name())
	}
	return values, members
}

// name returns the member's number, or its address.
func (m *member) name() string {
	if m.ID == 0 {
		return m.Address
	}
	return strconv.FormatUint(memberid.Number(m.ID), 10)
}

// hot returns the sums of all members, hottest first.
func (e *ensemble) hot() (h facts.HotSpots, missing []string) {
	h.Paths, h.Clients = []facts.HotPath{}, []facts.HotClient{}
	known := make(map[string]int)
	for _, m := range e.serving() {
		for _, p := range m.last.Hot.Paths {
			i, ok := known[p.Path]
			if !ok {
				i = len(h.Paths)
				known[p.Path] = i
				h.Paths = append(h.Paths, facts.HotPath{Path: p.Path})
			}
			h.Paths[i].Reads += p.Reads
			h.Paths[i].Writes += p.Writes
		}
		h.Clients = append(h.Clients, m.last.Hot.Clients...) // a session is connected to one member
		h.Window = max(h.Window, m.last.Hot.Window)
	}
	paths, clients := h.Paths, h.Clients
	sort.SliceStable(paths, func(i, j int) bool { return paths[i].Reads+paths[i].Writes > paths[j].Reads+paths[j].Writes })
	sort.SliceStable(clients, func(i, j int) bool { return clients[i].Reads+clients[i].Writes > clients[j].Reads+clients[j].Writes })
	return h, e.missing(func(s *Sample) error { return s.HotErr })
}
