package admin

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gozkd/gozkd/internal/memberid"
	"github.com/gozkd/gozkd/server"
)

func member(s *server.Facts, id int) (server.MemberStatus, bool) {
	all := s.Members()
	if i := slices.IndexFunc(all, func(m server.MemberStatus) bool { return m.ID == id }); i >= 0 {
		return all[i], true
	}
	return server.MemberStatus{}, false
}

func leader(h *handler, _ *http.Request) (object, error) {
	s := h.server.Facts()
	if len(s.Members()) == 0 {
		return nil, errors.New("server is not initialized") // ZooKeeper's text if there is no ensemble
	}
	st := s.Status()
	m, _ := member(s, st.Leader)
	return object{{"is_leader", st.Leader == st.Member}, {"leader_id", memberid.NumberOrNone(st.Leader)}, {"leader_ip", peerHost(m)}}, nil
}

func votingView(s *server.Facts) object {
	config := object{}
	for _, m := range s.Members() {
		if m.Observer {
			continue
		}
		config = append(config, field{strconv.Itoa(memberid.Number(m.ID)), object{
			{"server_addresses", addresses(m.PeerAddress)},
			{"election_addresses", addresses(m.ElectionAddress)},
			{"client_address", m.ClientAddress},
			{"learner_type", "participant"},
		}})
	}
	return object{{"current_config", config}}
}

// peers answers with what the connections of this server to and from the other members use: plain,
// a version of TLS, or "" if there is no connection.
func peers(s *server.Facts) object {
	list, self := []object{}, s.Status().Member
	for _, m := range s.Members() {
		if m.ID != self {
			list = append(list, object{{"sid", memberid.Number(m.ID)}, {"address", m.PeerAddress}, {"link_to",
				m.LinkTo}, {"link_from", m.LinkFrom}})
		}
	}
	return object{{"peers", list}}
}

func observers(s *server.Facts) object {
	values, list := s.Monitor(), []object{}
	for _, m := range s.Members() {
		fed := func(v server.Value) bool { return v.Name == "gozkd_peer_observing" && v.Peer == m.ID }
		if m.Observer && slices.ContainsFunc(values, fed) {
			list = append(list, object{{"sid", memberid.Number(m.ID)}})
		}
	}
	return object{{"synced_observers", len(list)}, {"observers", list}}
}

func zabState(s *server.Facts) object {
	st := s.Status()
	own, known := member(s, st.Member)
	if !known {
		return object{{"voting", false}, {"zabstate", ""}}
	}
	zxid, _ := s.Digest()
	return object{
		{"myid", memberid.Number(st.Member)},
		{"is_leader", st.Leader == st.Member},
		{"quorum_address", addressSet(own.PeerAddress)},
		{"election_address", addressSet(own.ElectionAddress)},
		{"client_address", own.ClientAddress},
		{"voting", !own.Observer},
		{"last_zxid", fmt.Sprintf("0x%x", uint64(zxid))},
		{"zab_epoch", zxid >> 32},
		{"zab_counter", zxid & 0xffffffff},
		{"zabstate", zabPhase(s.Monitor())},
	}
}

// zabPhase derives the phase from the peer state in mntr: "leading - broadcast", "looking".
func zabPhase(values []server.Value) string {
	state, _ := value(values, "peer_state").(string)
	if _, phase, ok := strings.Cut(state, " - "); ok {
		return phase
	}
	if state == "looking" {
		return "election"
	}
	return ""
}

// addressSet returns a server's addresses in ZooKeeper's form. Here a server has a single address.
func addressSet(address string) object {
	list := addresses(address)
	o := object{{"empty", len(list) == 0}, {"all_addresses", list}}
	if len(list) == 0 {
		return o
	}
	host, port := hostPort(address)
	return append(o, field{"all_ports", []int{port}}, field{"all_host_strings", []string{host}}, field{"one", address})
}

// addresses returns a list with the address, or an empty list for an empty address.
func addresses(address string) []string {
	if address == "" {
		return []string{}
	}
	return []string{address}
}

// hostPort splits an address. The result for "" is empty.
func hostPort(address string) (host string, port int) {
	host, text, _ := net.SplitHostPort(address)
	port, _ = strconv.Atoi(text)
	return host, port
}

// patience bounds how long transfer_leadership and expire_session wait.
const patience = 10 * time.Second

// transferLeadership makes another member the leader: that of the parameter to, or any.
func transferLeadership(h *handler, r *http.Request) (object, error) {
	to := 0
	if text := r.URL.Query().Get("to"); text != "" {
		number, err := strconv.Atoi(text)
		if err != nil {
			return nil, &failedError{http.StatusBadRequest, fmt.Sprintf("to is %.64q; allowed: the number of a voter", text)}
		}
		to = int(memberid.Of(number))
		if m, ok := member(h.server.Facts(), to); !ok || m.Observer {
			return nil, &failedError{http.StatusBadRequest, fmt.Sprintf("server %d is not a voter of this ensemble", number)}
		}
	}
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	leader, err := h.server.HandOver(ctx, to)
	switch {
	case errors.Is(err, server.ErrNotLeading) && to != 0 && h.server.Status().Leader == to:
		leader = to // as wished already
	case errors.Is(err, server.ErrNotLeading):
		return nil, &failedError{http.StatusConflict, notLeader(h.server.Facts())}
	case err != nil:
		return nil, &failedError{http.StatusServiceUnavailable, err.Error()}
	}
	return object{{"leader_id", memberid.NumberOrNone(leader)}}, nil
}

// notLeader says why a server cannot hand the lead over, and whom to ask.
func notLeader(s *server.Facts) string {
	id := s.Status().Leader
	m, ok := member(s, id)
	switch {
	case len(s.Members()) == 0:
		return "this server is alone: there is no leadership to hand over"
	case !ok:
		return "this server is not the leader, and knows none: ask again later"
	}
	return fmt.Sprintf("this server is not the leader: ask server %d (%s)", memberid.Number(id), peerHost(m))
}

// peerHost returns the host in the first address for other members: that for clients may be 0.0.0.0
func peerHost(m server.MemberStatus) string {
	first, _, _ := strings.Cut(m.PeerAddress, "|")
	host, _ := hostPort(first)
	return host
}
