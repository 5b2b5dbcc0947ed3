package turn

import (
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/cryptotest"

	"github.com/cockroachdb/datadriven"
	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/gozkd/gozkd/consensus/internal/core"
)

// TestScripts runs the transcripts in testdata, which show what the loops of some members ask of
// their hosts, in order. After each command everything happens that follows from it: messages
// arrive, logs sync, checkpoints are written and sent.
//
//	members 1 2 3 [learners=(4)] [fresh] [idle=(5)]  an ensemble; idle members are not started
//	        [elected]                                member 1 has won an election
//	        [levels=(1,2)] [keep=BYTES]              supported feature levels; the log in memory
//	tick [N...] [n=COUNT]                            time passes, for all members or these
//	propose N REQUEST...   read N NAME               clients of member N
//	handover N [to=M]      checkpoint N              an operator
//	target [voters=(...)] [learners=(...)] [serial=N]  every member applies a reconfig
//	cut N | heal N                                   the network refuses connections from and to N
//	hang N | resume N                                the disk of N syncs nothing
//	stop N | start N [levels=(1,2)]                  the process
//	pause N | continue N                             the process stands still; messages wait
//	empty N | copy N | restore N                     the data directory of a stopped member
//	transfers break | hold | ok                      checkpoints on the way do not arrive, wait, or arrive
//	status                                           what each member is
//
// A line in parentheses is an event; every other line is a call of a method of Host. An entry is
// shown as TERM/INDEX [CONTENT]. Plain heartbeats and their answers are not shown.
// The flag -rewrite writes the outputs anew.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		s := newScript(t)
		datadriven.RunTest(t, path, func(t *testing.T, td *datadriven.TestData) string {
			s.t = t
			return s.command(td)
		})
	})
}

// script is a few members in one goroutine.
type script struct {
	t       *testing.T
	members map[uint64]*scriptMember
	net     []core.Message
	cut     map[uint64]bool // by member: the network loses its messages
	// transfers is "" normally, "break" if checkpoints do not arrive, "hold" if they do not end.
	transfers string
	lines     []scriptLine
	cfg       scriptConfig
}

type scriptConfig struct {
	voters, learners []uint64
	fresh            bool
	levels           core.LevelRange
	keep             int
}

// scriptLine is a line of the output. The same message to several members is one line.
type scriptLine struct {
	member uint64
	to     []uint64
	text   string
}

func newScript(t *testing.T) *script {
	cryptotest.SetGlobalRandom(t, 1) // raft draws its election timeouts there
	return &script{t: t, members: map[uint64]*scriptMember{}, cut: map[uint64]bool{}}
}

// run does one command, given as a line of a script, and returns what happens.
func (s *script) run(line string) string {
	s.t.Helper()
	cmd, args, err := datadriven.ParseLine(line)
	if err != nil {
		s.t.Fatal(err)
	}
	return s.command(&datadriven.TestData{Cmd: cmd, CmdArgs: args})
}

func (s *script) say(member uint64, format string, args ...any) {
	s.lines = append(s.lines, scriptLine{member: member, text: fmt.Sprintf(format, args...)})
}

func (s *script) saySend(m *core.Message) {
	text := messageText(m)
	if n := len(s.lines) - 1; n >= 0 && s.lines[n].to != nil && s.lines[n].member == m.From && s.lines[n].text == text && !slices.Contains(s.lines[n].to, m.To) {
		s.lines[n].to = append(s.lines[n].to, m.To)
	} else if text != "" {
		s.lines = append(s.lines, scriptLine{m.From, []uint64{m.To}, text})
	}
}

func (s *script) text() string {
	var b strings.Builder
	for i, again := 0, 1; i < len(s.lines); i++ {
		l := s.lines[i]
		if i+1 < len(s.lines) && reflect.DeepEqual(l, s.lines[i+1]) {
			again++
			continue
		}
		if l.to != nil {
			l.text = fmt.Sprintf("send to %s: %s", ids(l.to), l.text)
		}
		if again > 1 {
			l.text += fmt.Sprintf(" (%d times)", again)
		}
		fmt.Fprintf(&b, "%d: %s\n", l.member, l.text)
		again = 1
	}
	return b.String()
}

func ids(list []uint64) string { return strings.Trim(fmt.Sprint(list), "[]") }

func (s *script) all() (list []*scriptMember) {
	for _, id := range slices.Sorted(maps.Keys(s.members)) {
		if m := s.members[id]; m.up {
			list = append(list, m)
		}
	}
	return list
}

// command does one command, and returns what happens.
func (s *script) command(td *datadriven.TestData) string {
	s.lines = nil
	s.begin(td)
	s.settle()
	if len(s.lines) == 0 {
		return "ok"
	}
	return s.text()
}

// begin does one command, without what follows from it.
func (s *script) begin(td *datadriven.TestData) {
	var numbers []uint64
	var words []string
	for _, a := range td.CmdArgs {
		if n, err := strconv.ParseUint(a.Key, 10, 64); err == nil && len(a.Vals) == 0 {
			numbers = append(numbers, n)
		} else if len(a.Vals) == 0 {
			words = append(words, a.Key)
		}
	}
	list := func(key string) (values []uint64) {
		if a, ok := td.Arg(key); ok {
			for i := range a.Vals {
				values = append(values, 0)
				a.Scan(s.t, i, &values[i])
			}
		}
		return values
	}
	number := func(key string, value uint64) uint64 {
		if v := list(key); len(v) > 0 {
			value = v[0]
		}
		return value
	}
	var m *scriptMember
	if len(numbers) > 0 {
		m = s.members[numbers[0]]
	}
	levels := func(r core.LevelRange) core.LevelRange {
		if l := list("levels"); len(l) == 2 {
			r = core.LevelRange{Min: core.Level(l[0]), Max: core.Level(l[1])}
		}
		return r
	}
	switch td.Cmd {
	case "members":
		s.cfg = scriptConfig{numbers, list("learners"), slices.Contains(words, "fresh"), levels(core.LevelRange{Min: 3, Max: 3}), int(number("keep", 1<<20))}
		idle := list("idle")
		for _, id := range slices.Concat(numbers, s.cfg.learners, idle) {
			s.members[id] = &scriptMember{s: s, id: id, levels: s.cfg.levels}
			s.members[id].disk = s.newDisk(id, s.cfg.fresh || slices.Contains(idle, id))
		}
		for _, id := range slices.Concat(numbers, s.cfg.learners) {
			s.members[id].start()
		}
		if slices.Contains(words, "elected") {
			for range 3 {
				s.tick(nil)
			}
			s.lines = nil
			s.allStatus()
		}
	case "tick":
		for range number("n", 1) {
			s.tick(numbers)
		}
	case "propose":
		for _, w := range words {
			m.core.Propose([]byte(w), w)
		}
		m.turn()
	case "read":
		m.core.Read(func() { s.say(m.id, "answer read %s: %v", words[0], m.applied) })
		m.turn()
	case "handover":
		m.loop.HandOver(number("to", 0), func() { s.say(m.id, "(the hand-over has ended)") })
		m.turn()
	case "checkpoint":
		m.loop.Checkpoint()
		m.turn()
	case "target":
		for _, m := range s.all() {
			m.core.SetTarget(core.Target{Serial: number("serial", 0), Voters: list("voters"), Learners: list("learners")})
			m.turn()
		}
	case "cut":
		m.disconnect()
		s.cut[m.id] = true
	case "heal":
		delete(s.cut, m.id)
		m.connect()
	case "hang", "resume":
		m.hung = td.Cmd == "hang"
	case "pause", "continue":
		m.paused = td.Cmd == "pause"
		s.net, m.waiting = append(s.net, m.waiting...), nil
	case "stop":
		m.stop()
	case "start":
		m.levels = levels(m.levels)
		m.start()
	case "empty":
		m.disk = s.newDisk(m.id, true)
	case "copy":
		m.copied = m.disk.copy(s.t)
	case "restore":
		m.disk = m.copied.copy(s.t)
	case "transfers":
		s.transfers = strings.TrimPrefix(words[0], "ok")
	case "status":
		s.allStatus()
	default:
		td.Fatalf(s.t, "unknown command")
	}
}

// tick lets time pass, for all members or these.
func (s *script) tick(members []uint64) {
	for _, m := range s.all() {
		if !m.paused && (len(members) == 0 || slices.Contains(members, m.id)) {
			m.loop.Tick()
			m.turn()
		}
	}
	s.settle()
}

func (s *script) allStatus() {
	for _, m := range s.all() {
		m.status()
	}
}

// settle lets everything happen that is under way: messages first, then logs, then checkpoints.
func (s *script) settle() {
	for range 10_000 {
		if slices.ContainsFunc(s.all(), func(m *scriptMember) bool { return !m.unsynced && m.sync() }) {
			continue
		}
		if len(s.net) > 0 {
			msg := s.net[0]
			s.net = s.net[1:]
			switch m := s.members[msg.To]; {
			case m == nil || !m.up || s.cut[msg.To] || s.cut[msg.From]:
			case m.paused:
				m.waiting = append(m.waiting, msg)
			default:
				m.try(m.core.Step(&msg))
				m.turn()
			}
			continue
		}
		all := s.all()
		if !slices.ContainsFunc(all, (*scriptMember).sync) && !slices.ContainsFunc(all, (*scriptMember).background) {
			return
		}
	}
	s.t.Fatal("the members do not come to rest")
}

// scriptDisk is a data directory. The log keeps everything since the last installed checkpoint.
type scriptDisk struct {
	log     *raft.MemoryStorage
	state   core.LogState // of the log, as of the last sync
	newest  core.LogState
	meta    core.Meta // of the checkpoint
	applied []string  // the requests in the checkpoint
}

func (s *script) newDisk(id uint64, fresh bool) *scriptDisk {
	d := &scriptDisk{log: raft.NewMemoryStorage(), meta: core.Meta{Member: id, Streams: core.Streams{}}}
	if !fresh {
		conf := &raftpb.ConfState{Voters: s.cfg.voters, Learners: s.cfg.learners}
		d.meta = core.Meta{Member: id, Level: s.cfg.levels.Min, Cluster: 1, Index: 1, Term: 1, Conf: conf, Streams: core.Streams{}}
		d.state = core.LogState{Term: 1, Commit: 1}
		if err := d.log.ApplySnapshot(core.Snapshot(1, 1, conf)); err != nil {
			s.t.Fatal(err)
		}
	}
	return d
}

// write does work of the log. Without a sync, the newest state goes along with the next write.
func (d *scriptDisk) write(work []LogWork, sync bool) error {
	for _, w := range work {
		if a := w.Append; a != nil && a.Term != nil {
			d.newest.Term, d.newest.Vote, d.newest.Commit = a.GetTerm(), a.GetVote(), a.GetCommit()
		}
		if m := w.Mark; m != nil {
			d.newest.Incarnation, d.newest.Outdated = m.Incarnation, m.Outdated
			if m.Term != 0 {
				d.newest.Term, d.newest.Vote = m.Term, m.Vote
			}
		}
		if r := w.Install; r != nil {
			d.meta = r.Meta
			if err := d.log.ApplySnapshot(w.Append.GetSnapshot()); err != nil {
				return err
			}
		}
		if err := d.log.Append(w.Append.GetEntries()); err != nil {
			return err
		}
	}
	if sync {
		d.state = d.newest
	}
	return nil
}

// read returns raft's storage for a start.
func (d *scriptDisk) read(t *testing.T) *raft.MemoryStorage {
	storage := raft.NewMemoryStorage()
	if d.meta.Index == 0 {
		return storage
	}
	d.state.Commit = max(d.state.Commit, d.meta.Index)
	d.newest = d.state
	first, err := d.log.FirstIndex()
	last, err1 := d.log.LastIndex()
	term, err2 := d.log.Term(first - 1)
	err = errors.Join(err, err1, err2, storage.ApplySnapshot(core.Snapshot(first-1, term, d.meta.Conf)), storage.SetHardState(d.state.HardState()))
	if last >= first {
		entries, err1 := d.log.Entries(first, last+1, 1<<30)
		err = errors.Join(err, err1, storage.Append(entries))
	}
	if err != nil {
		t.Fatal(err)
	}
	return storage
}

// copy returns a copy of the data directory.
func (d *scriptDisk) copy(t *testing.T) *scriptDisk {
	c := *d
	c.log = d.read(t)
	return &c
}

var discarded = &raft.DefaultLogger{Logger: log.New(io.Discard, "", 0)}
