package server

import (
	"net"
	"strconv"
	"time"

	"github.com/gozkd/gozkd/internal/memberid"
	"github.com/gozkd/gozkd/internal/serverlist"
	"github.com/gozkd/gozkd/internal/vfs"
	"github.com/gozkd/gozkd/server/facts"
	"github.com/gozkd/gozkd/server/internal/meter"
)

// Status and the types below are what a server tells about itself: see package facts.
type (
	Status       = facts.Status
	Stats        = facts.Stats
	Value        = facts.Value
	Summary      = facts.Summary
	Histogram    = facts.Histogram
	Connection   = facts.Connection
	Session      = facts.Session
	Watch        = facts.Watch
	SessionPaths = facts.SessionPaths
	Expiry       = facts.Expiry
	MemberStatus = facts.MemberStatus
	ZnodeKind    = facts.ZnodeKind
	HotSpots     = facts.HotSpots
	HotPath      = facts.HotPath
	HotClient    = facts.HotClient
	SlowRequest  = facts.SlowRequest
	Setting      = facts.Setting
)

// Stats returns the values of the words srvr and stat.
func (s *Server) Stats() facts.Stats {
	st := s.state.stats()
	st.Version, st.Connections, st.Outstanding = s.versionLine(), s.conns.count(), s.writes.Outstanding()
	st.Received, st.Sent = s.meter.Counted(meter.PacketsReceived), s.meter.Counted(meter.PacketsSent)
	st.ReplyBytes, st.ProposalBytes = s.meter.Replies.Read(), s.meter.Proposals.Read()
	st.MinLatencyMs, st.AvgLatencyMs, st.MaxLatencyMs = s.meter.Latencies()
	if s.life.Accepting.Load() {
		st.Mode, st.Uptime = s.mode(), max(0, s.cfg.Now().Sub(s.startedWall))
	}
	return st
}

// Digest returns the last zxid and a hash of the state after it. Servers of an ensemble with the
// same zxid have the same digest.
func (s *Server) Digest() (zxid int64, digest uint64) {
	s.state.RLock()
	defer s.state.RUnlock()
	return int64(s.state.tree.LastZxid()), s.state.tree.Digest()
}

// Settings returns the settings in effect under the names and in the order of the conf word,
// followed by Config.Settings. A setting of Config.Settings with the name of an earlier line
// replaces the value of that line. Settings reads the directories for their sizes.
func (s *Server) Settings() []facts.Setting {
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
		{Key: "serverId", Value: strconv.Itoa(int(memberid.Number(c.MemberID)))},
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
	if s.life.Accepting.Load() {
		s.meter.ResetCounts(s.node.Status().Counts)
	}
}
