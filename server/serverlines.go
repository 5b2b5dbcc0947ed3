package server

import (
	"time"

	"github.com/gozkd/gozkd/consensus"
	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/internal/serverlist"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server/internal/members"
)

const (
	// linesPatience is for how many ticks the leader remembers the server lines of another member,
	// which reports them twice a tick.
	linesPatience = 3
	// linesRetry is after how many ticks a change is tried again that was not possible.
	linesRetry = 10
)

// serverLines makes the ensemble follow the server lines of its members, see members.Lines. All but
// lines is owned by the goroutine of runSessions.
type serverLines struct {
	*shared
	lines members.Lines // reported by other members
	noted proto.Zxid    // version of the members for which a difference of the lines was logged
	tried time.Time     // when a change was last proposed, by the runtime's clock
}

// follow runs twice a tick.
func (s *serverLines) follow(st consensus.Status) {
	if s.alone() {
		return
	}
	current, version, changing := s.state.membership()
	if version == 0 || changing {
		return
	}
	own := uint64(s.cfg.MemberID)
	differ := members.Differ(s.members, current, own)
	if differ && s.noted != version {
		s.noted = version
		s.note(current)
	}
	switch {
	case s.live.Load().ReconfigEnabled:
	case !st.Leading && differ:
		s.node.Send(st.Leader, append([]byte{reportLines}, s.members.Text(0)...))
	case st.Leading && time.Since(s.tried) > linesRetry*s.cfg.Tick:
		reported := s.lines.Recent(current.Voters(), linesPatience*s.cfg.Tick)
		if wanted, ok := members.Agreed(s.members, current, own, reported); ok && s.quorumConnected(wanted) {
			s.tried = time.Now()
			s.changeMembers(wanted, version)
		}
	}
}

func (s *serverLines) note(current serverlist.Set) {
	log := s.cfg.Logger.With("configured", members.OneLine(s.members), "members", members.OneLine(current))
	const differ = "the server lines of the configuration are not the members of the ensemble"
	if s.live.Load().ReconfigEnabled {
		log.Warn(differ+", and have no effect, because reconfigEnabled is true: "+
			"remove or correct the lines, or change the members",
			"command", members.ReconfigCommand(s.members, current))
		return
	}
	log.Info(differ + ": the lines take effect when a majority of the voters has been restarted with them")
}

// changeMembers proposes a reconfig in the name of the configuration files. version is that of the
// members that it replaces.
func (s *serverLines) changeMembers(wanted serverlist.Set, version proto.Zxid) {
	text := members.Text(wanted)
	flags := s.requestFlags() | datatree.FlagSkipACL
	one, multi := flags&datatree.FlagOneVoter != 0, flags&datatree.FlagMultiAddress != 0
	request := serverlist.Request{NewMembers: &text, OneVoter: one, MultiAddress: multi}
	if _, err := serverlist.Reconfigure(nil, request); err != nil {
		s.cfg.Logger.Error("the server lines of a majority cannot become the members of the ensemble: "+
			"two participants are the least unless standaloneEnabled=false, and no two servers may share an address",
			"lines", members.OneLine(wanted), "reason", err)
		return
	}
	s.cfg.Logger.Info("a majority of the voters has new server lines: the members are changed", "lines", members.OneLine(wanted))
	body := proto.ReconfigRequest{NewMembers: &text, ConfigID: int64(version)}
	s.propose(datatree.Request{Op: proto.OpReconfig, Flags: flags, Body: body.Append(nil)}, func(res *datatree.Result) {
		if res.Err != proto.OK {
			s.cfg.Logger.Warn("the members of the ensemble were not changed", "reason", res.Err.String())
		}
	})
}
