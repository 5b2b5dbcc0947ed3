package server

import (
	"cmp"
	"net"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/gozkd/gozkd/internal/memberid"
	"github.com/gozkd/gozkd/internal/serverlist"
	"github.com/gozkd/gozkd/internal/vfs"
	"github.com/gozkd/gozkd/server/facts"
	"github.com/gozkd/gozkd/server/internal/bounds"
	"github.com/gozkd/gozkd/server/internal/meter"
)

// Status and the types below are the facts about a server: see package facts.
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
	EndedSession = facts.EndedSession
)

// Facts are the facts about a server that admin, metrics, web and the four-letter words show. Facts
// reads the parts of a server under their own locks, holds no lock itself, and changes only the
// counters and the mask of srst, crst and stmk. Its methods may be called at any time, also before
// the server starts and after it has closed. Status and NotServing are those of the Server.
type Facts struct {
	*shared
	serving
	conns     *connTable
	sessions  *sessions
	leader    *leadership
	writes    *bounds.Writes
	ports     *serverPorts
	strangers *strangers
	backups   *Backups

	traceMask atomic.Int64 // of the words gtmk and stmk
}

type serving interface {
	NotServing() error
	Status() facts.Status
}

// Facts returns the facts of this server, always the same.
func (s *Server) Facts() *Facts { return s.facts }

// Stats returns the values of the words srvr and stat.
func (f *Facts) Stats() facts.Stats {
	st := f.state.stats()
	st.Version, st.Connections, st.Outstanding = f.versionLine(), f.conns.count(), f.writes.Outstanding()
	st.Received, st.Sent = f.meter.Counted(meter.PacketsReceived), f.meter.Counted(meter.PacketsSent)
	st.ReplyBytes, st.ProposalBytes = f.meter.Replies.Read(), f.meter.Proposals.Read()
	st.MinLatencyMs, st.AvgLatencyMs, st.MaxLatencyMs = f.meter.Latencies()
	st.Crowd = f.conns.growth.crowdFacts()
	if f.cfg.ArchiveStats != nil {
		st.Fenced = f.cfg.ArchiveStats().Fenced
	}
	if f.cfg.Certificates != nil {
		st.Certificates = f.cfg.Certificates().Warning
	}
	if f.life.Accepting.Load() {
		st.Outside = f.outside(f.state.membership())
		st.Mode, st.Uptime = f.mode(), max(0, f.cfg.Now().Sub(f.startedWall))
	}
	return st
}

// Digest returns the last zxid and a hash of the state after it. Servers of an ensemble with the
// same zxid have the same digest.
func (f *Facts) Digest() (zxid int64, digest uint64) {
	now := f.state.figures()
	return now.stats.Zxid, now.digest
}

// Settings returns the settings in effect under the names and in the order of the conf word,
// followed by Config.Settings. A setting of Config.Settings with the name of an earlier line
// replaces the value of that line. Settings reads the directories for their sizes.
func (f *Facts) Settings() []facts.Setting {
	c := f.live.Load()
	data, log := f.DirSizes()
	lines := []Setting{
		{Key: "clientPort", Value: port(f.ports.plain.Addr())},
		{Key: "secureClientPort", Value: port(f.ports.secure.Addr())},
		{Key: "dataDir", Value: c.Dir},
		{Key: "dataDirSize", Value: strconv.FormatInt(data, 10)},
		{Key: "dataLogDir", Value: f.logDir()},
		{Key: "dataLogSize", Value: strconv.FormatInt(log, 10)},
		{Key: "tickTime", Value: ms(c.Tick)},
		{Key: "maxClientCnxns", Value: strconv.Itoa(max(0, c.MaxClientConns))},
		{Key: "minSessionTimeout", Value: ms(c.MinSessionTimeout)},
		{Key: "maxSessionTimeout", Value: ms(c.MaxSessionTimeout)},
		{Key: "clientPortListenBacklog", Value: "-1"},
		// A standalone ZooKeeper has no number and says 0. Ours is in the session ids.
		{Key: "serverId", Value: strconv.Itoa(int(memberid.Number(c.MemberID)))},
	}
	if !f.alone() {
		lines = append(lines, f.memberSettings()...)
	}
	for _, setting := range c.Settings {
		i := slices.IndexFunc(lines, func(line Setting) bool { return line.Key == setting.Key })
		if i < 0 {
			lines = append(lines, setting)
		} else {
			lines[i].Value = setting.Value
		}
	}
	return lines
}

// memberSettings returns the settings that only a member of an ensemble has.
func (f *Facts) memberSettings() []Setting {
	set, _ := f.ensemble()
	own, known := set.Get(uint64(f.cfg.MemberID))
	if !known {
		own, _ = f.members.Get(uint64(f.cfg.MemberID))
	}
	peerType := "0"
	if own.Role == serverlist.Observer {
		peerType = "1"
	}
	return []Setting{
		{Key: "initLimit", Value: strconv.Itoa(f.cfg.InitLimit)},
		{Key: "syncLimit", Value: strconv.Itoa(f.cfg.SyncLimit)},
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

func (f *Facts) logDir() string { return cmp.Or(f.cfg.LogDir, f.cfg.Dir) }

// DirSizes returns the bytes of all files below the data directory and below the directory of the
// log. As in ZooKeeper, if both are the same directory, both results are its whole size. In memory
// both are 0.
func (f *Facts) DirSizes() (data, log int64) {
	if f.cfg.Dir == "" {
		return 0, 0
	}
	data = vfs.SizeBelow(f.cfg.Dir)
	if f.logDir() == f.cfg.Dir {
		return data, data
	}
	return data, vfs.SizeBelow(f.logDir())
}

// TraceMask returns the mask of the gtmk word. The mask has no other effect.
func (f *Facts) TraceMask() int64 { return f.traceMask.Load() }

// SetTraceMask sets the mask, like the stmk word.
func (f *Facts) SetTraceMask(mask int64) { f.traceMask.Store(mask) }

// ResetStats resets all counts and measurements, like the srst word.
func (f *Facts) ResetStats() {
	f.meter.Reset()
	if f.life.Accepting.Load() {
		f.meter.ResetCounts(f.node.Status().Counts)
	}
}
