package turn

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/gozkd/gozkd/consensus/internal/core"
)

// scriptMember is a member: a loop with the Host that says what it is asked to do.
type scriptMember struct {
	s            *script
	core         *core.Core
	loop         *Loop
	storage      *raft.MemoryStorage
	queue        []LogWork // that is not durable
	id           uint64
	up, hung     bool
	paused       bool
	waiting      []core.Message // while paused
	life         uint64
	levels       core.LevelRange
	disk, copied *scriptDisk
	applied      []string
	term, vote   uint64 // given to the log
	unsynced     bool   // the log has work that needs a sync

	writing   []func() // the ends of checkpoints that are being written
	transfers []func() // the ends of checkpoints that are being sent
}

func (m *scriptMember) start() {
	s, d := m.s, m.disk
	storage := d.read(s.t)
	m.life++
	m.storage, m.queue = storage, nil
	m.up, m.writing, m.transfers, m.applied = true, nil, nil, slices.Clone(d.applied)
	m.term, m.vote = d.state.Term, d.state.Vote
	retention := core.DefaultRetention(1 << 40)
	retention.Bytes, retention.CutEntries = s.cfg.keep, 1
	var err error
	m.core, err = core.New(core.Config{
		ID: m.id, Incarnation: m.life, Past: d.state.Incarnation, Outdated: d.state.Outdated, Storage: storage, Meta: d.meta, Voters: s.cfg.voters, Learners: s.cfg.learners,
		Nonce: 100*m.id + m.life, GraceTicks: 40, Levels: m.levels, Retention: retention, Random: func() uint64 { return 1 }, Logger: discarded,
	})
	m.try(err)
	d.state.Incarnation = m.life
	m.loop = New(Config{Core: m.core, Host: m, Durable: true, HasPeers: true, LastCheckpoint: d.meta.Index, CheckpointRequests: 1000, CheckpointBytes: 1 << 30})
	m.connect()
}

// connect makes the connections to all members that can be reached, and exchanges their hellos.
func (m *scriptMember) connect() {
	for _, o := range m.s.all() {
		if o == m || m.s.cut[m.id] || m.s.cut[o.id] {
			continue
		}
		for _, p := range [][2]*scriptMember{{m, o}, {o, m}} {
			a, b := p[0], p[1]
			a.core.Admission.SetPeers(slices.DeleteFunc([]uint64{1, 2, 3, 4, 5}, func(id uint64) bool { return id == a.id || m.s.members[id] == nil }))
			a.core.Levels.SetPeer(b.id, b.core.Levels.Info())
			a.core.Membership.SetPeerState(b.id, b.core.Cluster() != 0)
			a.core.SeeOwnIncarnation(b.core.Meta().Streams[a.id].Incarnation)
			a.core.Reachable(b.id)
		}
	}
	for _, o := range m.s.all() {
		o.turn()
	}
}

// stop ends the process: work that the disk has not synced is lost.
func (m *scriptMember) stop() {
	m.up, m.unsynced = false, false
	m.disconnect()
}

// disconnect ends all connections of the member. New ones are refused.
func (m *scriptMember) disconnect() {
	for _, o := range m.s.all() {
		if o == m || m.s.cut[o.id] {
			continue
		}
		if m.up {
			m.core.Unreachable(o.id, true)
			m.turn()
		}
		o.core.Unreachable(m.id, true)
		o.turn()
	}
}

func (m *scriptMember) try(err error) {
	m.s.t.Helper()
	if err != nil {
		m.s.t.Fatalf("member %d: %v", m.id, err)
	}
}

func (m *scriptMember) turn() { m.try(m.loop.Turn()) }

func (m *scriptMember) say(format string, args ...any) { m.s.say(m.id, format, args...) }

// sync makes all work of the log durable, and reports whether there was any.
func (m *scriptMember) sync() bool {
	if m.hung || len(m.queue) == 0 {
		return false
	}
	if m.unsynced {
		m.say("(synced)")
	}
	m.try(m.disk.write(m.queue, m.unsynced))
	m.unsynced = false
	work := m.queue
	m.queue = nil
	for _, w := range work {
		if w.Append == nil {
			continue
		}
		if snap := w.Append.GetSnapshot(); snap != nil {
			m.try(m.storage.ApplySnapshot(snap))
		}
		m.try(m.storage.Append(w.Append.GetEntries()))
		m.try(m.loop.LogWritten(w.Append.GetResponses(), w.Install, m.Now()))
	}
	m.turn()
	return true
}

// background ends one checkpoint that is being written or sent, and reports whether there was any.
func (m *scriptMember) background() bool {
	list := &m.writing
	if len(*list) == 0 {
		list = &m.transfers
	}
	if len(*list) == 0 || list == &m.transfers && m.s.transfers == "hold" {
		return false
	}
	end := (*list)[0]
	*list = (*list)[1:]
	end()
	m.turn()
	return true
}

func (m *scriptMember) status() {
	last, err := m.storage.LastIndex()
	m.try(err)
	role := fmt.Sprintf("follows %d", m.core.Leader())
	switch {
	case m.core.Leads():
		role = "leads"
	case m.core.Fresh():
		role = "has no state"
	case m.core.Outdated() != "":
		role = "is outdated: " + m.core.Outdated()
	case m.core.Leader() == 0:
		role = "knows no leader"
	}
	conf := m.core.Conf()
	members := "voters " + ids(conf.GetVoters())
	if len(conf.GetVoters()) == 0 {
		members = "members unknown"
	}
	if len(conf.GetLearners()) > 0 {
		members += ", learners " + ids(conf.GetLearners())
	}
	m.say("%s; term %d, level %d, %s, log to entry %d, applied to entry %d: %v", role, m.core.RaftTerm(), m.core.Levels.Active(), members, last, m.core.Applied(), m.applied)
}

// The methods of Host.

func (m *scriptMember) Now() time.Time       { return time.UnixMilli(1) }
func (m *scriptMember) Monotonic() time.Time { return time.Time{} }
func (m *scriptMember) Flush()               {}

func (m *scriptMember) Send(msg core.Message) {
	m.s.saySend(&msg)
	m.s.net = append(m.s.net, msg)
}

func (m *scriptMember) WriteLog(work []LogWork, _ bool) error {
	var parts []string
	for _, w := range work {
		if w.Compact > 0 {
			m.say("drop the log up to entry %d", w.Compact)
		}
		parts = append(parts, m.workText(w)...)
	}
	if len(parts) > 0 {
		m.say("append %s", strings.Join(parts, " and "))
		m.unsynced = true
	}
	m.queue = append(m.queue, work...)
	return nil
}

// workText describes work that needs a write: not a commit index, which goes along with the next.
func (m *scriptMember) workText(w LogWork) (parts []string) {
	a := w.Append
	if term, vote := a.GetTerm(), a.GetVote(); a != nil && a.Term != nil && (term != m.term || vote != m.vote) {
		m.term, m.vote = term, vote
		if parts = append(parts, fmt.Sprintf("term %d", term)); vote != 0 {
			parts[0] += fmt.Sprintf(" with the vote for %d", vote)
		}
	}
	if len(a.GetEntries()) > 0 {
		parts = append(parts, entriesText(a.GetEntries()))
	}
	if w.Install != nil {
		parts = append(parts, fmt.Sprintf("the checkpoint of entry %d in place of the log", w.Install.Meta.Index))
	}
	if w.Mark != nil {
		parts = append(parts, markText(w.Mark))
	}
	if w.PersistCommit {
		parts = append(parts, "the commit index")
	}
	return parts
}

func markText(m *core.Mark) string {
	switch {
	case m.Outdated:
		return "the mark: outdated"
	case m.Term != 0:
		return fmt.Sprintf("the mark: let in, term %d with the vote for %d", m.Term, m.Vote)
	}
	return fmt.Sprintf("the mark: stream %d", m.Incarnation)
}

func (m *scriptMember) Apply(batches []core.Batch) {
	for _, b := range batches {
		var names, answers []string
		for _, r := range b.Requests {
			names = append(names, string(r.Payload))
			if r.Ref != nil {
				answers = append(answers, r.Ref.(string))
			}
		}
		m.applied = append(m.applied, names...)
		m.say("apply entry %d%s", b.Index, strings.TrimRight(": "+strings.Join(names, " "), ": "))
		if len(answers) > 0 {
			m.say("answer %s", strings.Join(answers, " "))
		}
	}
}

func (m *scriptMember) Reconciled(r core.Reconciled) {
	m.say("membership %d reached: %v", r.Serial, r.Reached)
}

func (m *scriptMember) FormLog(first core.LogState) error {
	m.say("append the first log state: term %d, commit %d (synced)", first.Term, first.Commit)
	m.disk.state = first
	return nil
}

func (m *scriptMember) FormCheckpoint(meta core.Meta) error {
	m.disk.meta = meta
	m.say("write the first checkpoint: entry %d, voters %s (synced)", meta.Index, ids(meta.Conf.GetVoters()))
	return m.disk.log.ApplySnapshot(core.Snapshot(meta.Index, meta.Term, meta.Conf))
}

func (m *scriptMember) WriteCheckpoint(base uint64, meta core.Meta) {
	m.say("write a checkpoint of entry %d: the changes since entry %d", meta.Index, base)
	applied := slices.Clone(m.applied)
	m.writing = append(m.writing, func() {
		m.say("(checkpoint written)")
		m.disk.meta, m.disk.applied = meta, applied
		m.try(m.loop.CheckpointWritten(meta.Index, 0))
	})
}

func (m *scriptMember) StartTransfer(to []uint64, index uint64) {
	for _, id := range to {
		m.say("transfer the checkpoint of entry %d to %d", index, id)
		m.transfers = append(m.transfers, func() { m.transfer(id) })
	}
}

// transfer ends a transfer: the checkpoint arrives, or the connection breaks.
func (m *scriptMember) transfer(id uint64) {
	dst, meta, applied := m.s.members[id], m.disk.meta, m.disk.applied
	ok := m.s.transfers == "" && dst.up && !m.s.cut[id] && !m.s.cut[m.id]
	if ok {
		dst.say("(the checkpoint of entry %d has arrived from %d)", meta.Index, m.id)
		meta.Member = id
		install := func() error { dst.applied, dst.disk.applied = slices.Clone(applied), applied; return nil }
		dst.loop.CheckpointReceived(&Received{From: m.id, Term: m.core.RaftTerm(), Meta: meta, Install: install})
		dst.turn()
	} else {
		m.say("(the transfer to %d broke)", id)
	}
	m.try(m.loop.TransferEnded(id, ok))
}

func (m *scriptMember) CancelTransfers() { m.say("cancel all transfers") }

func (m *scriptMember) Discard(r *Received) error {
	m.say("discard the checkpoint of entry %d", r.Meta.Index)
	return nil
}

func (m *scriptMember) Installed(r *Received, lost []any) {
	m.say("switch to the checkpoint of entry %d", r.Meta.Index)
	for _, ref := range lost {
		m.say("answer %v: applied, result unknown", ref)
	}
}

// The words for messages and entries.

func entryText(e *raftpb.Entry) string {
	var cc raftpb.ConfChangeV2
	switch {
	case e.GetType() == raftpb.EntryConfChangeV2:
		if err := proto.Unmarshal(e.GetData(), &cc); err != nil {
			return err.Error()
		}
		words := map[raftpb.ConfChangeType]string{raftpb.ConfChangeAddNode: "voter", raftpb.ConfChangeAddLearnerNode: "learner", raftpb.ConfChangeRemoveNode: "remove"}
		text := "membership:"
		for _, c := range cc.GetChanges() {
			text += fmt.Sprintf(" %s %d", words[c.GetType()], c.GetNodeId())
		}
		if len(cc.GetChanges()) == 0 {
			text += " end of the joint change"
		}
		return text
	case core.EntryLevel(e) != 0:
		return fmt.Sprintf("level %d", core.EntryLevel(e))
	case len(e.GetData()) == 0:
		return "first of the term"
	}
	var names []string
	_, err := core.ReadBatch(e.GetData(), func(server, _, _ uint64, payload []byte) {
		if server == 0 {
			payload = []byte("the ensemble's identity")
		}
		names = append(names, string(payload))
	})
	if err != nil {
		return err.Error()
	}
	return strings.Join(names, " ")
}

func entriesText(entries []*raftpb.Entry) string {
	var parts []string
	for _, e := range entries {
		parts = append(parts, fmt.Sprintf("%d/%d [%s]", e.GetTerm(), e.GetIndex(), entryText(e)))
	}
	return strings.Join(parts, ", ")
}

// messageText describes a message. "" for a heartbeat that confirms no read round.
func messageText(m *core.Message) string {
	r := m.Raft
	if r == nil {
		return otherText(m)
	}
	at := fmt.Sprintf("%d/%d", r.GetLogTerm(), r.GetIndex())
	granted := map[bool]string{false: "granted", true: "refused"}[r.GetReject()]
	switch r.GetType() {
	case raftpb.MsgPreVote:
		return fmt.Sprintf("pre-vote request, term %d, log ends at %s", r.GetTerm(), at)
	case raftpb.MsgVote:
		return fmt.Sprintf("vote request, term %d, log ends at %s", r.GetTerm(), at)
	case raftpb.MsgPreVoteResp:
		return fmt.Sprintf("pre-vote %s, term %d", granted, r.GetTerm())
	case raftpb.MsgVoteResp:
		return fmt.Sprintf("vote %s, term %d", granted, r.GetTerm())
	case raftpb.MsgApp:
		if len(r.GetEntries()) == 0 {
			return fmt.Sprintf("commit %d, no entries after %s", r.GetCommit(), at)
		}
		return fmt.Sprintf("%s after %s, commit %d", entriesText(r.GetEntries()), at, r.GetCommit())
	case raftpb.MsgAppResp:
		if r.GetReject() {
			return fmt.Sprintf("no entry %d as in your log; mine may agree up to %d/%d", r.GetIndex(), r.GetLogTerm(), r.GetRejectHint())
		}
		if r.GetIndex() == 0 {
			return fmt.Sprintf("there is a later term, %d", r.GetTerm())
		}
		return fmt.Sprintf("durable up to entry %d", r.GetIndex())
	case raftpb.MsgTimeoutNow:
		return "campaign now"
	case raftpb.MsgReadIndex:
		return "read round: how far is the log committed?"
	case raftpb.MsgReadIndexResp:
		return fmt.Sprintf("read round: committed up to entry %d", r.GetIndex())
	case raftpb.MsgHeartbeat:
		if len(r.GetContext()) > 0 {
			return fmt.Sprintf("heartbeat for a read round, term %d", r.GetTerm())
		}
		return ""
	case raftpb.MsgHeartbeatResp:
		if len(r.GetContext()) > 0 {
			return "answer to the heartbeat for a read round"
		}
		return ""
	}
	return r.GetType().String()
}

// otherText describes a message that is not raft's, by its encoding.
func otherText(m *core.Message) string {
	if g := m.Forward; g != nil {
		var names []string
		for _, p := range g.Payloads {
			names = append(names, string(p))
		}
		return fmt.Sprintf("requests of my stream from number %d on: %s", g.First, strings.Join(names, " "))
	}
	if nonce, ok := m.JoinNonce(); ok {
		if m.JoinsOutdated() {
			return fmt.Sprintf("I am outdated, life %d", nonce)
		}
		return fmt.Sprintf("I have no state, life %d", nonce)
	}
	frame, err := m.Encode()
	if err != nil {
		return err.Error()
	}
	if frame[0] == 6 {
		return "commit notice"
	}
	return [...]string{1: "there is an ensemble", 2: "I formed the ensemble", 3: "you are let in", 4: "I formed the ensemble, and know your life"}[frame[1]]
}
