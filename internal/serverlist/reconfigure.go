package serverlist

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/gozkd/gozkd/internal/memberid"
	"github.com/gozkd/gozkd/proto"
)

// Request is a reconfig request. A nil text is absent. See Reconfigure.
type Request struct {
	Joining, Leaving, NewMembers *string
	// OneVoter: a single voter may be left. Otherwise two are the least, because ZooKeeper would
	// turn into a standalone server with fewer (standaloneEnabled).
	OneVoter bool
	// MultiAddress: lines may have several addresses (multiAddress.enabled).
	MultiAddress bool
}

// Reconfigure applies a request to the current members, and returns the new members or an *Error:
//
//   - NewMembers is the full list of new server lines, separated by commas or newlines. If it is
//     present, the other texts are ignored.
//   - Leaving is a comma-separated list of ids to remove. It is applied before Joining.
//   - Joining is a comma-separated list of server lines to add. A line replaces a line with the
//     same id.
//
// An error says what is wrong, and Answer what a client is told. The caller must check everything
// else: the version, a pending request, permissions, and which servers are connected. Reconfigure
// is stricter than ZooKeeper: the id of a joining server must be written as "server.N" with N from
// 0 to memberid.MaxNumber, a line must have a host, a full list is checked for overlapping
// addresses like joining servers, and groups and weights are not supported. Source: ZooKeeper
// PrepRequestProcessor, QuorumPeerConfig.parseDynamicConfig.
func Reconfigure(cur Set, r Request) (next Set, err error) {
	least := 2
	if r.OneVoter {
		least = 1
	}
	if r.NewMembers != nil {
		next, err = full(*r.NewMembers, least, r.MultiAddress)
	} else {
		next, err = incremental(cur, list(r.Joining), list(r.Leaving), r.MultiAddress)
	}
	if n := len(next.Voters()); err == nil && n < least {
		return nil, refusal(proto.ErrBadArguments, "%d participants would be left, the least is %d", n, least)
	}
	return next, err
}

// Answer returns ZooKeeper's code for an error of Reconfigure: ErrBadArguments, or
// ErrMarshallingError for some malformed numbers; otherwise OK. ours reports that ZooKeeper would
// take the arguments, and only gozkd does not.
func Answer(err error) (code proto.ErrCode, ours bool) {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.code, e.ours
	}
	return proto.OK, false
}

// refusal returns an Error without a line, for a request whose lines are right one by one.
func refusal(code proto.ErrCode, format string, args ...any) *Error {
	return &Error{Problem: fmt.Sprintf(format, args...), code: code}
}

// list splits a text at commas, and drops white space and empty elements.
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

func incremental(cur Set, joining, leaving []string, several bool) (Set, error) {
	next := slices.Clone(cur)
	for _, word := range leaving {
		id, err := strconv.ParseInt(word, 10, 64)
		if err != nil {
			// The code is ZooKeeper's, which does not expect its exception here.
			return nil, refusal(proto.ErrMarshallingError, "%q to remove is no number of a server", word)
		}
		next = slices.DeleteFunc(next, func(m Member) bool { return int64(memberid.Number(m.ID)) == id })
	}
	for _, line := range joining {
		key, value, ok := strings.Cut(line, "=")
		if !ok {
			return nil, refusal(proto.ErrBadArguments, "%q to add is no server line", line)
		}
		m, err := parse(strings.TrimSpace(key), strings.TrimSpace(value), true, several)
		if err != nil {
			return nil, err
		}
		if next, err = next.add(m); err != nil {
			return nil, err
		}
	}
	return next, nil
}

func full(text string, least int, several bool) (Set, error) {
	var next Set
	for key, value := range Lines(strings.ReplaceAll(text, ",", "\n")) {
		if key == "version" { // allowed, and ignored
			if _, err := parseVersion(value); err != nil {
				return nil, refusal(proto.ErrMarshallingError, "the version %q is no number", value)
			}
			continue
		}
		m, err := parse(key, value, false, several)
		if err != nil {
			return nil, err
		}
		if next, err = next.add(m); err != nil {
			return nil, err
		}
	}
	if len(next.Voters()) < least && len(next.Observers()) > 0 { // the code is ZooKeeper's, as above
		return nil, refusal(proto.ErrMarshallingError, "there are observers, and less than %d participants", least)
	}
	return next, nil
}

// add is With, except that it fails if another member has an address of m, or if m has a secure
// client port, which members of other versions would refuse.
func (s Set) add(m Member) (Set, error) {
	if m.SecurePort != 0 {
		return nil, refusal(proto.ErrBadArguments, "%s has a secure client port, which reconfig does not take", m.Key())
	}
	for _, other := range s {
		if other.ID != m.ID && m.overlaps(other) {
			return nil, refusal(proto.ErrBadArguments, "%s and %s have an address in common", m.Key(), other.Key())
		}
	}
	return s.With(m), nil
}

// overlaps reports whether two members share an address for any purpose. Loopback addresses and
// "all addresses" are ignored, since they mean a different machine on each machine. Names are
// compared as text; ZooKeeper's QuorumServer.checkAddressDuplicate, the source, resolves them.
func (m Member) overlaps(other Member) bool {
	mine := m.endpoints()
	return slices.ContainsFunc(other.endpoints(), func(e endpoint) bool { return slices.Contains(mine, e) })
}

type endpoint struct {
	host string
	port int
}

func (m Member) endpoints() []endpoint {
	all := []endpoint{{m.ClientHost, m.ClientPort}}
	for _, a := range m.peers() {
		all = append(all, endpoint{a.host, a.peerPort}, endpoint{a.host, a.election})
	}
	var list []endpoint
	for _, a := range all {
		a.host = strings.ToLower(a.host)
		ip, err := netip.ParseAddr(a.host)
		local := err == nil && (ip.IsLoopback() || ip.IsUnspecified()) || a.host == "localhost"
		if a.port != 0 && !local {
			list = append(list, a)
		}
	}
	return list
}
