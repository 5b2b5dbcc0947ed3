package server

import "bufio"

// writeMonitor answers mntr: the keys of ZooKeeper that have a meaning here, with what was measured. Which are missing
// and why is in docs/words.md.
func (s *Server) writeMonitor(w *bufio.Writer) {
	line := func(key string, value any) { say(w, "zk_%s\t%v\n", key, value) }
	st, f := &s.stats, s.facts()
	low, avg, high := st.latency.read()
	line("version", s.versionLine())
	line("server_state", s.mode())
	line("avg_latency", decimal(avg))
	line("max_latency", high)
	line("min_latency", low)
	line("packets_received", st.received.Load())
	line("packets_sent", st.sent.Load())
	line("num_alive_connections", s.numConns())
	line("outstanding_requests", s.outstanding.outstanding())
	line("znode_count", f.znodes)
	line("watch_count", s.watches.Len())
	line("ephemerals_count", f.ephemeral)
	line("approximate_data_size", f.dataBytes)
	line("global_sessions", f.sessions)
	line("uptime", s.cfg.Now().Sub(s.started).Milliseconds())
	if !s.alone() {
		s.monitorMember(line)
	}
	if open, limit, ok := fileDescriptors(); ok {
		line("open_file_descriptor_count", open)
		line("max_file_descriptor_count", limit)
	}
	line("auth_failed_count", st.authFailed.Load())
	line("connection_rejected", st.connsDropped.Load())
	line("stale_sessions_expired", st.expired.Load())
	line("fsync_threshold_exceed_count", st.slowSyncs.Load())
	summary := func(key string, l *latency) {
		low, avg, high := l.read()
		n, sum := l.sum()
		line("avg_"+key, decimal(avg))
		line("min_"+key, low)
		line("max_"+key, high)
		line("cnt_"+key, n)
		line("sum_"+key, sum)
	}
	summary("fsynctime", &st.syncs)
	summary("snapshottime", &st.checkpoints)
}
