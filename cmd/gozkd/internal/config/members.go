package config

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/gozkd/gozkd/internal/memberid"
	"github.com/gozkd/gozkd/internal/serverlist"
)

// members determines the servers and this server's number. A single server line configures a
// standalone server, unless standaloneEnabled is false. Several lines configure an ensemble.
func (r *resolver) members(c *Config) {
	lines := r.serverLines()
	me := r.identity(c)
	if c.ClientPortAddress == "" && len(lines) == 0 && !r.hasFile && !r.exposed {
		c.ClientPortAddress = "127.0.0.1" // no setting exposes this server to others
		if _, set := r.won["4lw.commands.whitelist"]; !set && c.SecureClientPort == 0 {
			c.Server.Words = []string{"*"} // top asks for them
		}
	}
	role := serverlist.Participant
	switch {
	case len(lines) == 0 && c.Server.OneVoter:
		w := r.won["standaloneEnabled"]
		r.problem(w.from, w.key, "is false, but there is no server line: name the servers, or remove this key")
	case len(lines) == 0:
	case len(lines) == 1 && !c.Server.OneVoter:
		r.soleMember(c, lines[0])
	default:
		role = r.ensemble(c, lines, me)
	}
	r.noEffect(len(r.problems) == 0 && !strings.EqualFold(r.won["peerType"].value, role.String()), "peerType", ": the role is that of the server line, "+role.String())
}

// serverLines returns all server lines, including those of the dynamic configuration file.
func (r *resolver) serverLines() []won {
	if w, ok := r.won["dynamicConfigFile"]; ok && w.value != "" {
		r.dynamicFile(w)
	}
	var lines []won
	var best layer
	for _, name := range r.order {
		if strings.HasPrefix(name, "server.") {
			lines = append(lines, r.won[name])
			best = max(best, r.won[name].from.layer)
		}
	}
	if best <= fromEnvironment {
		return lines
	}
	// ZOO_SERVERS is a complete ensemble; it cannot extend server lines from elsewhere.
	kept := lines[:0]
	for _, l := range lines {
		if l.from.layer == fromEnvironment {
			r.warn(l.from, l.key, "has no effect: the servers are configured elsewhere")
			continue
		}
		kept = append(kept, l)
	}
	return kept
}

// isMembership reports whether a key belongs in a dynamic configuration file.
func isMembership(key string) bool {
	return strings.HasPrefix(key, "server.") || strings.HasPrefix(key, "group.") || strings.HasPrefix(key, "weight.")
}

// dynamicFile adds a dynamic configuration file, which has all members and nothing else.
func (r *resolver) dynamicFile(named won) {
	before := len(r.problems)
	for _, name := range r.order {
		if w := r.won[name]; isMembership(name) && w.from.layer == fromFile {
			r.problem(w.from, w.key, "must be in the dynamic configuration file, which is set at %s", named.from)
		}
	}
	if len(r.problems) > before {
		return
	}
	for _, p := range r.readFile(named.value, "; it is named by "+named.from.String()) {
		from := Origin{Source: named.value, Line: p.line, layer: fromFile}
		switch {
		case p.key == "version":
		case isMembership(p.key):
			r.set(setting{key: p.key, value: p.value, from: from})
		default:
			r.problem(from, p.key, "does not belong in a dynamic configuration file; allowed: server.N, group.N, weight.N, version")
		}
	}
}

// parseLine parses a server line, or adds a problem.
func (r *resolver) parseLine(c *Config, line won, key string) (serverlist.Member, bool) {
	m, err := serverlist.Parse(key, line.value)
	if bad, ok := errors.AsType[*serverlist.Error](err); ok {
		r.problem(line.from, line.key, "is %q: %s; allowed: server.N=%s", line.value, bad.Problem, serverlist.LineFormat)
	}
	if err == nil && strings.Contains(strings.TrimRight(line.value, serverlist.AddressSeparator), serverlist.AddressSeparator) && !c.Server.MultiAddress {
		r.problem(line.from, line.key, "has several addresses, which need multiAddress.enabled=true on all servers")
	}
	return m, err == nil
}

// soleMember uses the client address of a standalone server's only line, with any number.
func (r *resolver) soleMember(c *Config, line won) {
	if _, err := strconv.ParseUint(strings.TrimPrefix(line.canonical, "server."), 10, 63); err != nil {
		r.problem(line.from, line.key, "is not server.N with a number N")
		return
	}
	m, ok := r.parseLine(c, line, "server.1")
	if !ok {
		return
	}
	if m.Role == serverlist.Observer {
		r.problem(line.from, line.key, "is an observer, and there is no other server: make it a participant, or add the others")
		return
	}
	r.clientAddress(c, line, m)
	if line.from.layer > fromImage {
		r.warn(line.from, line.key, "is the only server line, so this server is standalone: of the line only "+
			"a client port has an effect; add the other servers, or set standaloneEnabled=false for an ensemble of one")
	}
}

// clientAddress uses the client addresses of this server's own line, unless a flag sets them.
// Source: ZooKeeper QuorumPeerConfig.setupClientPort, and setupSecureClientPort of 3.10.
func (r *resolver) clientAddress(c *Config, line won, m serverlist.Member) {
	port, address := r.won["clientPort"], r.won["clientPortAddress"]
	c.Server.ListenFixed = port.from.layer > line.from.layer || address.from.layer > line.from.layer
	r.ownPort = m.ClientPort != 0
	r.linePort(line, "client", "clientPort", m.ClientHost, m.ClientPort, &c.ClientPort, &c.ClientPortAddress)
	const secure = "secureClientPort"
	if r.linePort(line, "secure client", secure, m.SecureHost, m.SecurePort,
		&c.SecureClientPort, &c.SecureClientPortAddress) {
		r.won[secure] = won{setting: line.setting}
	}
}

// linePort uses a client address of this server's own line, unless keys set it, and says so.
func (r *resolver) linePort(line won, kind, key, host string, n int, setPort *int, setAddress *string) bool {
	port, address := r.won[key], r.won[key+"Address"]
	if host == "0.0.0.0" {
		host = "" // ZooKeeper's notation for all addresses, including IPv6
	}
	switch {
	case n == 0, port.from.layer > line.from.layer:
		return false
	case port.from.layer == line.from.layer && *setPort != n && *setPort != 0:
		r.problem(line.from, line.key, "has %s port %d, but %s is %d at %s", kind, n, key, *setPort, port.from)
		return false
	case address.from.layer == line.from.layer && host != "" && !sameHost(host, *setAddress):
		r.problem(line.from, line.key, "has %s address %s, but %sAddress is %s at %s",
			kind, host, key, *setAddress, address.from)
		return false
	}
	*setPort = n
	if address.from.layer <= line.from.layer && host != "" {
		*setAddress = host
	}
	return true
}

// sameHost compares two hosts as written, without resolving names.
func sameHost(a, b string) bool {
	x, errX := netip.ParseAddr(a)
	y, errY := netip.ParseAddr(b)
	return strings.EqualFold(a, b) || errX == nil && errY == nil && x.Unmap() == y.Unmap()
}

// ensemble checks the server lines of an ensemble and returns the role of this server.
func (r *resolver) ensemble(c *Config, lines []won, me self) serverlist.Role {
	before := len(r.problems)
	line := make(map[uint64]won)
	var set serverlist.Set
	for _, l := range lines {
		m, ok := r.parseLine(c, l, l.canonical)
		if !ok {
			continue
		}
		if other, again := line[m.ID]; again { // server.1 and server.01; equal keys have been rejected
			r.problem(l.from, l.key, "is a second server %d, after %s: each server needs a different number",
				memberid.Number(m.ID), other.from)
			continue
		}
		m = r.ownHost(c, l, m, me)
		for _, other := range set {
			if address := commonAddress(m, other); address != "" {
				r.problem(l.from, l.key, "has the same address, %s, as %s at %s: each server needs a different address", address, other.Key(), line[other.ID].from)
			}
		}
		line[m.ID], set = l, set.With(m)
	}
	r.ensembleKeys(c)
	if len(r.problems) > before {
		return serverlist.Participant
	}
	r.voters(c, lines[0], set)
	if !me.check(r, lines[0], set) {
		return serverlist.Participant
	}
	m, _ := set.Get(c.MyID)
	r.clientAddress(c, line[m.ID], m)
	for i := range set { // which are for clients of ZooKeeper 3.10: the members of gozkd have none
		set[i].SecureHost, set[i].SecurePort = "", 0
	}
	c.Members = announce(set, *c)
	return m.Role
}

// commonAddress returns an address for other servers that two servers have in common, or "".
func commonAddress(a, b serverlist.Member) string {
	for one := range strings.SplitSeq(a.PeerAddress(), serverlist.AddressSeparator) {
		host, port, _ := net.SplitHostPort(one)
		for other := range strings.SplitSeq(b.PeerAddress(), serverlist.AddressSeparator) {
			if h, p, _ := net.SplitHostPort(other); p == port && sameHost(host, h) {
				return one
			}
		}
	}
	return ""
}

// ownHost returns a server line's member. In the line of this server, 0.0.0.0 means to listen for
// the others on all addresses: they know its address from their own lines, and clients are told the
// name of this machine. In the line of another server, 0.0.0.0 is a problem.
func (r *resolver) ownHost(c *Config, line won, m serverlist.Member, me self) serverlist.Member {
	unspecified := slices.IndexFunc(m.PeerHosts(), serverlist.AllAddresses)
	if unspecified < 0 || !me.known { // without a number, that is the problem
		return m
	}
	name, err := os.Hostname()
	if memberid.Of(me.id) == m.ID && err == nil && name != "" && m.More == "" {
		c.ListenOnAllIPs, m.Host = true, name
		return m
	}
	r.problem(line.from, line.key, "has the address %s, where this server cannot reach it: only a server's own line may have it", m.PeerHosts()[unspecified])
	return m
}

// announce returns the members for clients to read, with the actual client address of this server
// if a flag has changed the address. A port that is chosen at the start cannot be announced.
func announce(set serverlist.Set, c Config) serverlist.Set {
	m, _ := set.Get(c.MyID)
	if m.ClientPort == 0 || m.ClientPort == c.ClientPort && (m.ClientHost == "0.0.0.0" || sameHost(m.ClientHost, c.ClientPortAddress)) {
		return set
	}
	m.ClientHost, m.ClientPort = c.ClientPortAddress, c.ClientPort
	switch {
	case m.ClientPort == 0:
		m.ClientHost = ""
	case m.ClientHost == "":
		m.ClientHost = "0.0.0.0"
	}
	return set.With(m)
}

// voters checks the participants. Source: ZooKeeper QuorumPeerConfig.parseDynamicConfig.
func (r *resolver) voters(c *Config, first won, set serverlist.Set) {
	switch n := len(set.Voters()); {
	case n == 0:
		r.problem(first.from, first.key, "is an observer, and no server is a participant: an ensemble needs votes, so make some of them participants")
	case n == 1 && !c.Server.OneVoter:
		r.problem(first.from, first.key, "is one of %d servers, but only server.%d is a participant: add more, or set standaloneEnabled=false",
			len(set), memberid.Number(set.Voters()[0]))
	case n%2 == 0 && c.ScaleURL == "": // otherwise the lines are not the members
		r.warn(first.from, first.key, "is one of %d participants, which tolerate no more failures than %d would (%d): use an odd number", n, n-1, (n-1)/2)
	}
}

// ensembleKeys checks keys that have no effect on a standalone server.
func (r *resolver) ensembleKeys(c *Config) {
	for _, name := range r.order {
		w := r.won[name]
		switch {
		case strings.HasPrefix(name, "group."), strings.HasPrefix(name, "weight."):
			r.problem(w.from, w.key, "belongs to hierarchical quorums, which are not supported: each participant has one vote, and a majority decides; remove the keys group.* and weight.* from all servers if that suits you")
		case name == "quorum.auth.enableSasl" && strings.Contains("SERVER_JVMFLAGS KAFKA_OPTS", w.from.Source):
			r.warn(w.from, w.key, "%s has no effect, as in ZooKeeper, which reads it in zoo.cfg only", w.value)
		case name == "quorum.auth.enableSasl" && strings.EqualFold(w.value, "true"):
			r.problem(w.from, w.key, "is true, which is not supported: servers prove who they are by a secret (gozkd.peer.secretFile) or by TLS (sslQuorum)")
		case name == "gozkd.scale.url" && w.value != "" && !c.Server.ReconfigEnabled:
			r.problem(w.from, w.key, "is set, which needs reconfigEnabled=true on all servers")
		case name == "oraclePath" && w.value != "":
			r.warn(w.from, w.key, "%s has no effect: a majority of the participants decides, also of two", w.value)
		}
	}
	for _, limit := range []struct {
		key   string
		ticks int
	}{{"initLimit", c.Server.InitLimit}, {"syncLimit", c.Server.SyncLimit}} {
		if limit.ticks == 0 {
			w := r.won[limit.key]
			r.problem(w.from, w.key, "is %s; allowed in an ensemble: 1 or more ticks", w.value)
		}
		if int64(limit.ticks)*c.Server.Tick.Milliseconds() > math.MaxInt32 {
			w := r.firstOn(limit.key, "tickTime")
			r.problem(w.from, w.key, "is %s: %d ticks of %d ms for %s exceed %d ms", w.value, limit.ticks, c.Server.Tick.Milliseconds(), limit.key, math.MaxInt32)
		}
	}
}

// self is the number of this server, as far as it is known.
type self struct {
	id    int64
	from  Origin
	key   string // the key as written; empty for the file myid
	known bool
	// path of the file myid; empty if all data is in memory
	file string
	// wrong is set after a problem was added.
	wrong bool
}

// identity determines the number of this server: the key myid, or the file myid in the data
// directory, which must agree. Without others neither is needed, but the file must be readable.
func (r *resolver) identity(c *Config) self {
	var me self
	if w, ok := r.won["myid"]; ok {
		me = self{id: int64(memberid.Number(c.MyID)), from: w.from, key: w.key, known: true, wrong: c.MyID == 0}
	}
	if c.Server.Dir == "" {
		return me
	}
	me.file = filepath.Join(c.Server.Dir, "myid")
	data, err := os.ReadFile(me.file)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) { // which is a problem of dataDir
		return me
	}
	from := Origin{Source: me.file, Line: 1}
	if err != nil {
		r.unreadable(me.file, err, "")
		me.wrong = true
		return me
	}
	id, err := ParseMyID(data)
	switch {
	case err != nil:
		r.problem(from, "", "%v", err)
		me.wrong = true
	case me.known && !me.wrong && me.id != id && me.from.layer > fromImage:
		r.problem(me.from, me.key, "is %d, but %s contains %d: the data belongs to server %d; correct one of them", me.id, me.file, id, id)
		me.wrong = true
	case !me.known, me.from.layer == fromImage:
		me.id, me.from, me.key, me.known = id, from, "", true
		c.MyID = memberid.Of(id) // 0 for the number of a server alone that no member can have
	}
	return me
}

// ParseMyID reads the number, of any server, in a file myid. Errors continue the file's name.
func ParseMyID(data []byte) (int64, error) {
	text, _, _ := strings.Cut(string(data), "\n")
	id, err := strconv.ParseInt(trim(text), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("is %q; allowed: the number of this server", trim(text))
	}
	return id, nil
}

// check reports whether a server line, of which first is the first, has the number.
func (me self) check(r *resolver, first won, set serverlist.Set) bool {
	if me.wrong {
		return false
	}
	if !me.known {
		where := "into " + me.file + ", or set "
		if me.file == "" {
			where = "into "
		}
		r.problem(first.from, first.key, "names a server of an ensemble, and the number of this server is not configured: write it %smyid in zoo.cfg, --id or ZOO_MY_ID", where)
		r.problems[len(r.problems)-1].Missing = me.file != ""
		return false
	}
	if memberid.Of(me.id) == 0 {
		r.problem(me.from, me.key, "is %d; allowed in an ensemble: the number of a server line, 0 to %d",
			me.id, memberid.MaxNumber)
		return false
	}
	if _, ok := set.Get(memberid.Of(me.id)); !ok {
		var keys []string
		for _, m := range set {
			keys = append(keys, m.Key())
		}
		r.problem(me.from, me.key, "is %d, but the servers are %s: add this one at %s, or correct the number", me.id, strings.Join(keys, ", "), first.from)
		return false
	}
	return true
}
