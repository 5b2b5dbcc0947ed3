package server

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/gozkd/gozkd/audit"
	"github.com/gozkd/gozkd/consensus"
	"github.com/gozkd/gozkd/internal/memberid"
	"github.com/gozkd/gozkd/internal/serverlist"
	"github.com/gozkd/gozkd/server/facts"
	"github.com/gozkd/gozkd/server/internal/meter"
)

// Monitor returns the values of the mntr word, in its order. Before Start has opened the data, and
// after the server stopped, Monitor returns nil. A server that waits for a leader has values,
// although it does not answer the word. The caller owns the result.
//
// docs/reference/monitoring.md says which of ZooKeeper's keys differ here, and which are missing.
func (f *Facts) Monitor() []facts.Value {
	if !f.life.Accepting.Load() {
		return nil
	}
	list := make(facts.Values, 0, 256)
	f.addState(&list)
	if !f.alone() {
		f.addMember(&list)
	}
	if open, limit, ok := fileDescriptors(); ok {
		list.Add("open_file_descriptor_count", open)
		list.Add("max_file_descriptor_count", limit)
	}
	var counts consensus.Counts
	if !f.alone() { // a standalone ZooKeeper has no elections and no proposals
		counts = f.meter.CountsSinceReset(func() consensus.Counts { return f.node.Status().Counts })
	}
	f.meter.AddCounts(&list, counts, int64(f.strangers.handshakes.Len()))
	f.meter.AddTimes(&list)
	f.meter.AddNamespaces(&list)
	f.addQuotas(&list)
	f.meter.AddOwn(&list)
	data := f.state.stats()
	list.Add("gozkd_longest_child_list_bytes", int64(data.LongestListBytes))
	list.Add("gozkd_data_weight_bytes", data.Growth.Weight)
	list.Add("gozkd_data_limit_bytes", data.Growth.Limit)
	list.Add("gozkd_data_full", flag(data.Growth.Full))
	if text := data.Growth.String(); text != "" {
		list.Add("gozkd_data_status", text)
	}
	for _, s := range data.Growth.Largest {
		if name := strings.TrimPrefix(s.Path, "/"); name != "" && len(name) <= meter.MaxNamespaceBytes {
			list.AddKey("gozkd_data_weight_per_namespace", name, s.Weight)
		}
	}
	crowd := f.conns.growth.crowdFacts()
	list.Add("gozkd_crowd_bytes", crowd.Bytes)
	list.Add("gozkd_crowd_limit_bytes", crowd.Limit)
	list.Add("gozkd_crowded", flag(crowd.Refusing))
	list.Add("gozkd_client_memory_unread_bytes", f.conns.links.Memory.Unread.Load())
	list.Add("gozkd_client_memory_queued_bytes", f.conns.links.Memory.Queued.Load())
	list.Add("gozkd_client_memory_limit_bytes", f.conns.links.Memory.Limit.Load())
	list.Add("gozkd_watch_memory_bytes", f.state.watches.Bytes())
	list.Add("gozkd_watch_memory_limit_bytes", f.live.Load().WatchMemory)
	f.addCertificates(&list)
	f.backups.addFacts(&list)
	if counter, ok := f.cfg.Audit.(audit.Counter); ok {
		events, dropped := counter.Counts()
		list.Add("gozkd_audit_events_total", events)
		list.Add("gozkd_audit_dropped_total", dropped)
	}
	st := f.node.Status()
	list.Add("gozkd_feature_level", int64(st.Level))
	list.Add("gozkd_feature_level_max", int64(st.MaxLevel))
	list.Add("gozkd_checkpoint_reverted", flag(st.Reverted))
	pending, stalls := f.node.LogPending()
	list.Add("gozkd_log_pending_seconds", float64(pending.Milliseconds())/1000)
	list.Add("gozkd_log_stalls_total", stalls)
	if !f.alone() {
		list.Add("gozkd_requests_resent_total", counts.Resent)
		list.Add("gozkd_peer_messages_refused_total", counts.Refused)
	}
	return list
}

func (f *Facts) addCertificates(l *facts.Values) {
	if f.cfg.Certificates == nil {
		return
	}
	c := f.cfg.Certificates()
	if c.Expires.IsZero() {
		return
	}
	l.Add("gozkd_tls_reloads_total", c.Reloads)
	l.Add("gozkd_tls_reloads_refused_total", c.Refused)
	l.Add("gozkd_tls_certificate_expires_seconds", c.Expires.Unix())
}

// addState appends the properties of the server at this moment, and the values next to them in
// ZooKeeper's mntr.
func (f *Facts) addState(l *facts.Values) {
	st := f.Stats()
	l.Add("version", st.Version)
	l.Add("server_state", st.Mode)
	l.Add("avg_latency", facts.Round(st.AvgLatencyMs))
	l.Add("max_latency", st.MaxLatencyMs)
	l.Add("min_latency", st.MinLatencyMs)
	l.Add("packets_received", st.Received)
	l.Add("packets_sent", st.Sent)
	l.Add("num_alive_connections", int64(st.Connections))
	l.Add("outstanding_requests", int64(st.Outstanding))
	l.Add("znode_count", int64(st.Znodes))
	l.Add("watch_count", int64(f.state.watches.Len()))
	l.Add("ephemerals_count", int64(st.Ephemerals))
	l.Add("approximate_data_size", st.DataBytes)
	l.Add("global_sessions", int64(st.Sessions))
	l.Add("local_sessions", int64(f.conns.locals.Len()))
	l.Add("last_client_response_size", st.ReplyBytes.Last)
	l.Add("min_client_response_size", st.ReplyBytes.Min)
	l.Add("max_client_response_size", st.ReplyBytes.Max)
	l.Add("uptime", st.Uptime.Milliseconds())
}

func (f *Facts) addMember(l *facts.Values) {
	st, zxid := f.node.Status(), f.state.lastZxid()
	set, _ := f.ensemble()
	mode := f.modeIn(set, st)
	l.Add("quorum_size", int64(len(set.Voters())))
	l.Add("peer_state", peerState(mode, st))
	l.Add("pending_syncs", f.meter.SyncsWaiting.Load())
	if st.Leading {
		l.Add("leader_uptime", time.Since(st.Since).Milliseconds())
		f.addLearners(l, set, st)
	} else if mode == facts.Follower {
		l.Add("synced_observers", int64(len(st.Relays)))
		for _, id := range st.Relays {
			l.AddPeer("gozkd_peer_observing", id, int64(1))
		}
	} else if mode == facts.Observer {
		l.Add("observer_master_id", int64(memberid.NumberOrNone(cmp.Or(st.Relay, st.Leader))))
	}

	links := f.node.PeerLinks()
	l.Add("gozkd_leader_id", int64(memberid.NumberOrNone(st.Leader)))
	l.Add("gozkd_epoch", int64(zxid.Epoch()))
	l.Add("gozkd_term", int64(st.Term))
	l.Add("gozkd_applied_index", int64(st.Applied))
	// A leader that does not hear from a quorum soon steps down, so this server knows no leader.
	l.Add("gozkd_quorum_reachable", flag(st.Leader != 0))
	voters := int64(0)
	for _, id := range st.Voters {
		if to, _ := peerLink(links, id); id == uint64(f.cfg.MemberID) || to != "" {
			voters++
		}
	}
	l.Add("gozkd_voters_connected", voters)
	for _, m := range set {
		if m.ID != uint64(f.cfg.MemberID) {
			to, from := peerLink(links, m.ID)
			l.AddPeer("gozkd_peer_connected", m.ID, flag(to != ""))
			if to != "" {
				l.AddPeer("gozkd_peer_tls", m.ID, flag(to != "plain"))
			}
			if from != "" {
				l.AddPeer("gozkd_peer_incoming_tls", m.ID, flag(from != "plain"))
			}
		}
	}
	refused := f.node.PeersRefused()
	for _, reason := range slices.Sorted(maps.Keys(refused)) {
		l.Add("gozkd_peers_refused_"+reason+"_total", refused[reason])
	}
	for _, p := range st.Peers {
		if lagKnown(p) {
			l.AddPeer("gozkd_peer_lag_entries", p.ID, int64(p.Lag))
		}
		l.AddPeer("gozkd_peer_in_step", p.ID, flag(p.Active && p.InStep))
	}
}

func (f *Facts) addLearners(l *facts.Values, set serverlist.Set, st consensus.Status) {
	var learners, followers, notVoting, observers int64
	for _, p := range st.Peers {
		if !p.Active {
			continue
		}
		learners++
		m, known := set.Get(p.ID)
		switch {
		case !p.InStep:
		case known && m.Role == serverlist.Observer:
			if !p.Relayed { // the follower counts it
				observers++
				l.AddPeer("gozkd_peer_observing", p.ID, int64(1))
			}
		default:
			followers++
			if p.Learner {
				notVoting++ // ZooKeeper counts it under both, too
			}
		}
	}
	proposals := f.meter.Proposals.Read()
	l.Add("learners", learners)
	l.Add("followers", learners) // its name before 3.6, for which tools still ask
	l.Add("synced_followers", followers)
	l.Add("synced_non_voting_followers", notVoting)
	l.Add("synced_observers", observers)
	l.Add("last_proposal_size", proposals.Last)
	l.Add("min_proposal_size", proposals.Min)
	l.Add("max_proposal_size", proposals.Max)
}

// lagKnown reports whether this leader has heard from the member. The lag of a member that receives
// a checkpoint counts from index 0.
func lagKnown(p consensus.PeerStatus) bool { return p.Match != 0 || p.Checkpoint }

func flag(set bool) int64 {
	if set {
		return 1
	}
	return 0
}
