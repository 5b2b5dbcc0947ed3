package inspect

import (
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gozkd/gozkd/consensus"
	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/proto"
)

// saved is a Source in our own formats.
type saved struct {
	tree    *datatree.Tree // nil: there is no checkpoint
	log     consensus.SavedLog
	applied bool // the entries after the checkpoint are in the tree
}

// checkpointMachine is a state machine that a checkpoint is restored into.
type checkpointMachine struct{ s *saved }

// Restore implements consensus.StateMachine.
func (m checkpointMachine) Restore(state iter.Seq2[[]byte, []byte]) (install func(), err error) {
	t, err := datatree.Restore(datatree.Options{}, state)
	if err != nil {
		return nil, err
	}
	return func() { m.s.tree = t }, nil
}

// Apply implements consensus.StateMachine. It is not called: the log is printed instead.
func (m checkpointMachine) Apply([]consensus.Batch) { panic("inspect: the log is applied elsewhere") }

// Capture implements consensus.StateMachine.
func (m checkpointMachine) Capture() consensus.Changes { return m.s.tree.CaptureAll() }

// CaptureAll implements consensus.StateMachine.
func (m checkpointMachine) CaptureAll() consensus.Changes { return m.s.tree.CaptureAll() }

func openDir(path, logDir string) (Source, error) {
	s := &saved{}
	log, err := consensus.ReadLog(path, logDir, checkpointMachine{s})
	if s.log = log; err == nil {
		s.rewind()
	}
	return s, err
}

// firstIndex is the index of the first entry of an ensemble that began with an empty tree.
const firstIndex = 2

// rewind goes back from the checkpoint to the empty tree if the log reaches back so far and leads to
// the same state: then all results are known.
func (s *saved) rewind() {
	if s.tree == nil || len(s.log.Earlier) == 0 || s.log.Earlier[0].Index != firstIndex {
		return
	}
	again := &saved{tree: datatree.New(datatree.Options{})}
	again.log.Later = s.log.Earlier
	if err := again.apply(nil); err != nil || again.tree.Digest() != s.tree.Digest() || again.tree.LastZxid() != s.tree.LastZxid() {
		return
	}
	s.tree = datatree.New(datatree.Options{})
	s.log.Earlier, s.log.Later = nil, append(s.log.Earlier, s.log.Later...)
}

func openCheckpoint(path, _ string) (Source, error) {
	s := &saved{}
	state, err := consensus.ReadCheckpoint(path, checkpointMachine{s})
	s.log.State = state
	return s, err
}

// isSegment recognizes a segment of our log.
func isSegment(_ string, _ os.FileInfo, head []byte) bool {
	return strings.HasPrefix(string(head), "gozkdWAL")
}

func openSegment(path, _ string) (Source, error) {
	log, err := consensus.ReadSegment(path)
	return &saved{log: log}, err
}

// isWALDir recognizes the directory of a log without the data directory around it.
func isWALDir(path string, info os.FileInfo, _ []byte) bool {
	segments, _ := filepath.Glob(filepath.Join(path, "*.wal")) // the only error is that of a bad pattern
	return info.IsDir() && len(segments) > 0
}

// openWALDir reads a log alone, without a checkpoint.
func openWALDir(path, _ string) (Source, error) {
	log, err := consensus.ReadWAL(path)
	return &saved{log: log}, err
}

// Notes implements Source.
func (s *saved) Notes() []string {
	if s.log.TornBytes == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%s: after offset %d are %d bytes of an append that was never acknowledged", s.log.TornPath, s.log.TornOffset, s.log.TornBytes)}
}

// Transactions implements Source.
func (s *saved) Transactions(f func(*Txn) bool) error {
	numbers := s.number()
	for i, b := range s.log.Earlier {
		for j := range b.Requests {
			r := datatree.CommittedRequest(b.Requests[j].Payload)
			t := s.txn(&b, &r)
			if numbers[i] != 0 {
				t.Zxid = numbers[i] + proto.Zxid(j) + 1
			}
			if !f(&t) {
				return nil
			}
		}
	}
	return s.apply(f)
}

func (s *saved) txn(b *consensus.LoggedBatch, r *datatree.Request) Txn {
	t := decodeTxn(r)
	t.Time, t.Index, t.Term = time.UnixMilli(b.TimeMs).UTC(), b.Index, b.Term
	t.Uncommitted = b.Index > s.log.Committed
	return t
}

// apply applies the entries after the checkpoint, and hands them to f until f returns false.
func (s *saved) apply(f func(*Txn) bool) error {
	s.applied = true
	for _, b := range s.log.Later {
		if b.NewTerm {
			s.tree.SetLastZxid(s.tree.LastZxid().NextEpoch())
		}
		for j := range b.Requests {
			r := datatree.CommittedRequest(b.Requests[j].Payload)
			res, events := s.tree.Apply(datatree.Header{Zxid: s.tree.LastZxid().Next(), TimeMs: b.TimeMs}, &r)
			if f == nil {
				continue
			}
			t := s.txn(&b, &r)
			if t.setResult(&r, &res, events); !f(&t) {
				f = nil
			}
		}
	}
	return s.log.Damage
}

// number returns, for each entry up to the checkpoint, the zxid before its first request, or 0 if the
// log does not tell: a term must begin in the log, or the checkpoint must be in it.
func (s *saved) number() []proto.Zxid {
	log := s.log.Earlier
	before := make([]proto.Zxid, len(log))
	if s.tree == nil || !s.log.Sure {
		return before
	}
	// Backwards through the term of the checkpoint. If the term begins in the log, the count must end
	// at 0.
	next := s.tree.LastZxid()
	i := len(log) - 1
	for ; i >= 0; i-- {
		n := proto.Zxid(len(log[i].Requests))
		if proto.Zxid(next.Counter()) < n || log[i].NewTerm && proto.Zxid(next.Counter()) != n {
			return make([]proto.Zxid, len(log))
		}
		next -= n
		before[i] = next
		if log[i].NewTerm {
			break
		}
	}
	// Forwards through each earlier term that begins in the log.
	epoch := s.tree.LastZxid().Epoch()
	for end := i; end > 0 && epoch > 0; {
		epoch--
		begin := end - 1
		for begin > 0 && !log[begin].NewTerm {
			begin--
		}
		if !log[begin].NewTerm {
			break
		}
		next := proto.MakeZxid(epoch, 0)
		for k := begin; k < end; k++ {
			before[k] = next
			next += proto.Zxid(len(log[k].Requests))
		}
		end = begin
	}
	return before
}

// errNoState says that a log alone has no state.
var errNoState = errors.New("a log alone holds no znodes and no sessions: name the data directory, which has the checkpoint")

// state brings the tree up to the end of the log. A damaged log ends the state early.
func (s *saved) state() error {
	if s.tree == nil {
		return errNoState
	}
	if s.applied {
		return nil
	}
	return s.apply(nil)
}

// Znodes implements Source.
func (s *saved) Znodes(f func(*datatree.ZnodeInfo) bool) error {
	err := s.state()
	if s.tree != nil {
		s.tree.Walk("/", func(z datatree.ZnodeInfo) bool { return f(&z) })
	}
	return err
}

// Sessions implements Source.
func (s *saved) Sessions(f func(datatree.SessionInfo) bool) error {
	err := s.state()
	if s.tree != nil {
		for info := range s.tree.Sessions() {
			if !f(info) {
				break
			}
		}
	}
	return err
}
