package serverlist

import (
	"errors"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/gozkd/gozkd/proto"
)

// minVoters is the smallest quorum system that reconfig may lead to: with fewer, ZooKeeper would have to turn itself
// into a standalone server.
const minVoters = 2

// Reconfigure returns what a reconfig request makes of the current members, or why it can't be done. nil is an
// absent list. With newMembers the request is a full list, comma or newline between lines, and the others do not
// count; else leaving is a comma-separated list of ids, and joining one of server lines, whose ids may be there
// already: then the line replaces the old one. Leaving comes first. All absent changes nothing.
//
// The codes are ZooKeeper's: ErrBadArguments, and ErrMarshallingError where it trips over a number. What else a
// request is checked for is the caller's: the version, a pending request, permissions, who is connected.
// Where ZooKeeper takes more than makes sense, this does not: the id of a joining server stands in "server.N" and is 1
// to MaxID, a line has a host, a full list is checked for overlapping addresses as joining servers are, and there
// are no groups and weights.
// Source: spec section 13.4; ZooKeeper PrepRequestProcessor, QuorumPeerConfig.parseDynamicConfig.
func Reconfigure(cur Set, joining, leaving, newMembers *string) (Set, proto.ErrCode) {
	var next Set
	var code proto.ErrCode
	if newMembers != nil {
		next, code = full(*newMembers)
	} else {
		next, code = incremental(cur, list(joining), list(leaving))
	}
	if code != proto.OK {
		return nil, code
	}
	if len(next.Voters()) < minVoters {
		return nil, proto.ErrBadArguments
	}
	return next, proto.OK
}

// list splits a list at commas and drops white space and empty elements.
func list(text *string) []string {
	if text == nil {
		return nil
	}
	var words []string
	for w := range strings.SplitSeq(*text, ",") {
		if w = strings.TrimSpace(w); w != "" {
			words = append(words, w)
		}
	}
	return words
}

func incremental(cur Set, joining, leaving []string) (Set, proto.ErrCode) {
	next := slices.Clone(cur)
	for _, word := range leaving {
		id, err := strconv.ParseInt(word, 10, 64)
		if err != nil {
			return nil, proto.ErrMarshallingError // NB: ZooKeeper's own slip, the exception is not one that it expects
		}
		next = slices.DeleteFunc(next, func(m Member) bool { return m.ID == uint64(id) })
	}
	for _, line := range joining {
		key, value, ok := strings.Cut(line, "=")
		if !ok {
			return nil, proto.ErrBadArguments
		}
		m, err := parse(strings.TrimSpace(key), strings.TrimSpace(value), true)
		if err != nil {
			return nil, codeOfLine(err)
		}
		if next, ok = next.put(m); !ok {
			return nil, proto.ErrBadArguments
		}
	}
	return next, proto.OK
}

func full(text string) (Set, proto.ErrCode) {
	var next Set
	for key, value := range lines(strings.ReplaceAll(text, ",", "\n")) {
		if key == "version" { // may be there, and does not count
			if _, err := parseVersion(value); err != nil {
				return nil, proto.ErrMarshallingError
			}
			continue
		}
		m, err := Parse(key, value)
		if err != nil {
			return nil, codeOfLine(err)
		}
		var ok bool
		if next, ok = next.put(m); !ok {
			return nil, proto.ErrBadArguments
		}
	}
	if len(next.Voters()) < minVoters && len(next.Observers()) > 0 {
		return nil, proto.ErrMarshallingError // NB: ZooKeeper's own slip, as above
	}
	return next, proto.OK
}

func codeOfLine(err error) proto.ErrCode {
	var line *Error
	if errors.As(err, &line) {
		return line.code
	}
	return proto.ErrBadArguments
}

// put is With, unless another member has one of the addresses of m.
func (s Set) put(m Member) (Set, bool) {
	if slices.ContainsFunc(s, func(other Member) bool { return other.ID != m.ID && m.overlaps(other) }) {
		return nil, false
	}
	return s.With(m), true
}

// overlaps reports whether two members share an address, no matter for what. Addresses that mean another machine on
// each machine do not count: loopback and "all addresses". Names are compared as they are written.
// Source: ZooKeeper QuorumServer.checkAddressDuplicate, which resolves them.
func (m Member) overlaps(other Member) bool {
	mine := m.addresses()
	return slices.ContainsFunc(other.addresses(), func(a address) bool { return slices.Contains(mine, a) })
}

type address struct {
	host string
	port int
}

func (m Member) addresses() []address {
	var list []address
	for _, a := range []address{{m.Host, m.PeerPort}, {m.Host, m.ElectionPort}, {m.ClientHost, m.ClientPort}} {
		a.host = strings.ToLower(a.host)
		ip, err := netip.ParseAddr(a.host)
		local := err == nil && (ip.IsLoopback() || ip.IsUnspecified()) || a.host == "localhost"
		if a.port != 0 && !local {
			list = append(list, a)
		}
	}
	return list
}
