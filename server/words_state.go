package server

import (
	"bufio"
	"io/fs"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/gozkd/gozkd/proto"
)

// facts is what the words tell of the tree, at one moment.
type facts struct {
	zxid              proto.Zxid
	digest            uint64
	znodes, ephemeral int
	sessions          int
	dataBytes         int64
}

func (s *Server) facts() facts {
	s.tree.RLock()
	defer s.tree.RUnlock()
	return facts{
		zxid: s.state.LastZxid(), digest: s.state.Digest(), znodes: s.state.NumZnodes(), ephemeral: s.state.NumEphemerals(),
		sessions: s.state.NumSessions(), dataBytes: s.state.ApproximateDataSize(),
	}
}

// writeState writes what srvr and stat have in common.
func (s *Server) writeState(w *bufio.Writer) {
	f := s.facts()
	low, avg, high := s.stats.latencies()
	say(w, "Latency min/avg/max: %d/%s/%d\n", low, decimal(avg), high)
	say(w, "Received: %d\nSent: %d\n", s.stats.received.Load(), s.stats.sent.Load())
	say(w, "Connections: %d\nOutstanding: %d\n", s.numConns(), s.outstanding.outstanding())
	mode := s.mode()
	say(w, "Zxid: %s\nMode: %s\nNode count: %d\n", f.zxid, mode, f.znodes)
	if mode == modeLeader {
		last, low, high := s.stats.proposals.read()
		say(w, "Proposal sizes last/min/max: %d/%d/%d\n", last, low, high)
	}
}

func (s *Server) numConns() int {
	s.connMu.Lock()
	defer s.connMu.Unlock()
	return len(s.conns)
}

// decimal formats a float as Java does: at least one digit after the point. ZooKeeper rounds to four.
func decimal(v float64) string {
	text := strconv.FormatFloat(round(v), 'f', -1, 64)
	if !strings.Contains(text, ".") {
		text += ".0"
	}
	return text
}

// Settings returns what is in effect under the names and in the order of the conf word, then those of Config.Settings. One of
// these with the name of a line replaces its value. The directories are looked through for their sizes.
func (s *Server) Settings() []Setting {
	c := s.live.Load()
	data, log := s.dirSizes()
	lines := []Setting{
		{"clientPort", port(s.Addr())},
		{"secureClientPort", "-1"},
		{"dataDir", c.Dir},
		{"dataDirSize", strconv.FormatInt(data, 10)},
		{"dataLogDir", s.logDir()},
		{"dataLogSize", strconv.FormatInt(log, 10)},
		{"tickTime", ms(c.Tick)},
		{"maxClientCnxns", strconv.Itoa(max(0, c.MaxClientConns))},
		{"minSessionTimeout", ms(c.MinSessionTimeout)},
		{"maxSessionTimeout", ms(c.MaxSessionTimeout)},
		{"clientPortListenBacklog", "-1"},
		// A standalone ZooKeeper has no number and says 0; ours is in its session ids.
		{"serverId", strconv.Itoa(int(c.MemberID))},
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

// writeConfig answers conf.
func (s *Server) writeConfig(w *bufio.Writer) {
	for _, line := range s.Settings() {
		say(w, "%s=%s\n", line.Key, line.Value)
	}
	if !s.alone() {
		set, version := s.ensemble()
		say(w, "membership: \n%s", set.Text(version)) // without a line feed, as in ZooKeeper
	}
}

// port returns the port of an address, or ZooKeeper's "none" for one without, such as a Unix socket's.
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

// dirSizes returns the bytes of all files below the data directory and below that of the log. As in ZooKeeper, if both
// are the same directory both are its whole size. In memory both are 0.
func (s *Server) dirSizes() (data, log int64) {
	if s.cfg.Dir == "" {
		return 0, 0
	}
	data = dirSize(s.cfg.Dir)
	if s.logDir() == s.cfg.Dir {
		return data, data
	}
	return data, dirSize(s.logDir())
}

func dirSize(dir string) (total int64) {
	// What can't be read, because it was removed in between, counts nothing: fn never returns an error.
	_ = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return nil
		}
		if info, err := e.Info(); err == nil {
			total += info.Size()
		}
		return nil
	})
	return total
}
