package server

import (
	"net"
	"strconv"
	"time"

	"github.com/gozkd/gozkd/internal/serverlist"
	"github.com/gozkd/gozkd/internal/vfs"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server/facts"
)

// The types of the facts that a server tells about itself are in package facts, so that the
// renderer of the four-letter words, which this package imports, can use them.

// Status is a server's summary of itself.
type Status = facts.Status

// Stats are the values of the words srvr and stat.
type Stats = facts.Stats

// Value is a measured or counted property of a server.
type Value = facts.Value

// Summary describes the values of something that happens repeatedly, since the start or the srst
// word.
type Summary = facts.Summary

// Histogram is a Summary with counts by size.
type Histogram = facts.Histogram

// Connection describes a client's connection at one moment.
type Connection = facts.Connection

// Session describes a session as the reporting server knows it.
type Session = facts.Session

// Watch is what a session watches on a path.
type Watch = facts.Watch

// SessionPaths lists the paths that belong to a session.
type SessionPaths = facts.SessionPaths

// Expiry lists the sessions that expire at the same moment if nothing more is heard from their
// clients.
type Expiry = facts.Expiry

// MemberStatus describes a server of an ensemble as the membership records it.
type MemberStatus = facts.MemberStatus

// ZnodeKind names a znode that the server may delete by itself: a container or a znode with a time
// to live.
type ZnodeKind = facts.ZnodeKind

// HotSpots are the paths and clients with the most requests on one server, the hottest first, at
// most 20 of each.
type HotSpots = facts.HotSpots

// HotPath is a path as clients named it, whether or not a znode exists there, cut off after 256
// bytes.
type HotPath = facts.HotPath

// HotClient is a session.
type HotClient = facts.HotClient

// SlowRequest is a request that took longer than Config.SlowRequest.
type SlowRequest = facts.SlowRequest

// Setting is a line of the conf word.
type Setting = facts.Setting

// treeStats describes the tree at one moment.
type treeStats struct {
	zxid              proto.Zxid
	digest            uint64
	znodes, ephemeral int
	sessions          int
	dataBytes         int64
	longestList       int
}

func (s *Server) treeStats() treeStats {
	s.treeMu.RLock()
	defer s.treeMu.RUnlock()
	return treeStats{
		zxid: s.tree.LastZxid(), digest: s.tree.Digest(), znodes: s.tree.NumZnodes(), ephemeral: s.tree.NumEphemerals(),
		sessions: s.tree.NumSessions(), dataBytes: s.tree.ApproximateDataSize(), longestList: s.tree.LongestList(),
	}
}

// Stats returns the values of the words srvr and stat.
func (s *Server) Stats() Stats {
	t, traffic := s.treeStats(), &s.meter.Traffic
	st := Stats{
		Version: s.versionLine(), Zxid: int64(t.zxid), Znodes: t.znodes, Ephemerals: t.ephemeral, Sessions: t.sessions, DataBytes: t.dataBytes, LongestListBytes: t.longestList,
		Connections: s.conns.count(), Outstanding: s.writes.Outstanding(), Received: traffic.Received.Load(), Sent: traffic.Sent.Load(),
		ReplyBytes: traffic.Responses.Read(), ProposalBytes: s.meter.Writes.Proposals.Read(),
	}
	st.MinLatencyMs, st.AvgLatencyMs, st.MaxLatencyMs = s.meter.Latencies()
	if s.life.accepting.Load() {
		st.Mode, st.Uptime = s.mode(), max(0, s.cfg.Now().Sub(s.startedWall))
	}
	return st
}

// Digest returns the last zxid and a hash of the state after it. Servers of an ensemble with the
// same zxid have the same digest.
func (s *Server) Digest() (zxid int64, digest uint64) {
	t := s.treeStats()
	return int64(t.zxid), t.digest
}

// Settings returns the settings in effect under the names and in the order of the conf word,
// followed by Config.Settings. A setting of Config.Settings with the name of an earlier line
// replaces the value of that line. Settings reads the directories for their sizes.
func (s *Server) Settings() []Setting {
	c := s.live.Load()
	data, log := s.DirSizes()
	lines := []Setting{
		{Key: "clientPort", Value: port(s.Addr())},
		{Key: "secureClientPort", Value: port(s.SecureAddr())},
		{Key: "dataDir", Value: c.Dir},
		{Key: "dataDirSize", Value: strconv.FormatInt(data, 10)},
		{Key: "dataLogDir", Value: s.logDir()},
		{Key: "dataLogSize", Value: strconv.FormatInt(log, 10)},
		{Key: "tickTime", Value: ms(c.Tick)},
		{Key: "maxClientCnxns", Value: strconv.Itoa(max(0, c.MaxClientConns))},
		{Key: "minSessionTimeout", Value: ms(c.MinSessionTimeout)},
		{Key: "maxSessionTimeout", Value: ms(c.MaxSessionTimeout)},
		{Key: "clientPortListenBacklog", Value: "-1"},
		// A standalone ZooKeeper has no number and says 0. Ours is in the session ids.
		{Key: "serverId", Value: strconv.Itoa(int(c.MemberID))},
	}
	if !s.alone() {
		lines = append(lines, s.memberSettings()...)
	}
	for _, setting := range c.Settings {
		known := false
		for i := range lines {
			if lines[i].Key == setting.Key {
				lines[i].Value, known = setting.Value, true
			}
		}
		if !known {
			lines = append(lines, setting)
		}
	}
	return lines
}

// memberSettings returns the settings that only a member of an ensemble has.
func (s *Server) memberSettings() []Setting {
	set, _ := s.ensemble()
	own, known := set.Get(uint64(s.cfg.MemberID))
	if !known {
		own, _ = s.members.Get(uint64(s.cfg.MemberID))
	}
	peerType := "0"
	if own.Role == serverlist.Observer {
		peerType = "1"
	}
	return []Setting{
		{Key: "initLimit", Value: strconv.Itoa(s.cfg.InitLimit)},
		{Key: "syncLimit", Value: strconv.Itoa(s.cfg.SyncLimit)},
		{Key: "electionAlg", Value: "3"}, // the only algorithm that ZooKeeper still has
		{Key: "electionPort", Value: strconv.Itoa(own.ElectionPort)},
		{Key: "quorumPort", Value: strconv.Itoa(own.PeerPort)},
		{Key: "peerType", Value: peerType},
	}
}

// port returns the port of an address, or ZooKeeper's -1 for an address without a port, such as
// that of a Unix socket.
func port(a net.Addr) string {
	if a != nil {
		if _, p, err := net.SplitHostPort(a.String()); err == nil {
			return p
		}
	}
	return "-1"
}

func ms(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

func (s *Server) logDir() string {
	if s.cfg.LogDir != "" {
		return s.cfg.LogDir
	}
	return s.cfg.Dir
}

// DirSizes returns the bytes of all files below the data directory and below the directory of the
// log. As in ZooKeeper, if both are the same directory, both results are its whole size. In memory
// both are 0.
func (s *Server) DirSizes() (data, log int64) {
	if s.cfg.Dir == "" {
		return 0, 0
	}
	data = vfs.SizeBelow(s.cfg.Dir)
	if s.logDir() == s.cfg.Dir {
		return data, data
	}
	return data, vfs.SizeBelow(s.logDir())
}

// TraceMask returns the mask of the gtmk word. The mask has no other effect.
func (s *Server) TraceMask() int64 { return s.traceMask.Load() }

// SetTraceMask sets the mask, like the stmk word.
func (s *Server) SetTraceMask(mask int64) { s.traceMask.Store(mask) }

// ResetStats resets all counts and measurements, like the srst word.
func (s *Server) ResetStats() {
	s.meter.Reset()
	if s.life.accepting.Load() {
		s.meter.ResetCounts(s.node.Status().Counts)
	}
}
