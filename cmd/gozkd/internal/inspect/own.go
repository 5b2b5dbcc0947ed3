package inspect

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/replica"
	"github.com/gozkd/gozkd/consensus"
	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/proto"
)

// saved holds the state and the entries of a source in our own formats.
type saved struct {
	replica.Replica // without a tree if there is no checkpoint
	log             consensus.SavedLog
}

func (s *saved) source() *source {
	from := &source{transactions: s.transactions, state: s.state}
	if s.log.TornBytes > 0 {
		from.notes = []string{fmt.Sprintf("%s: after offset %d are %d bytes of an append that was never acknowledged", s.log.TornPath, s.log.TornOffset, s.log.TornBytes)}
	}
	return from
}

func openDir(path, logDir string) (_ *source, err error) {
	s := &saved{}
	if s.log, err = consensus.ReadLog(path, logDir, &s.Replica); err == nil {
		s.rewind()
	}
	return s.source(), err
}

// firstIndex is the index of the first entry of an ensemble that began with an empty tree.
const firstIndex = 2

// rewind goes back from the checkpoint to the empty tree if the log reaches back so far and leads
// to the same state: then all results are known.
func (s *saved) rewind() {
	if s.Tree == nil || len(s.log.Earlier) == 0 || s.log.Earlier[0].Index != firstIndex {
		return
	}
	again := &saved{Replica: replica.Replica{Tree: datatree.New(datatree.Options{})}}
	again.log.Later = s.log.Earlier
	if err := again.apply(nil); err != nil || again.Tree.Digest() != s.Tree.Digest() || again.Tree.LastZxid() != s.Tree.LastZxid() {
		return
	}
	s.Tree = datatree.New(datatree.Options{})
	s.log.Earlier, s.log.Later = nil, append(s.log.Earlier, s.log.Later...)
}

func openCheckpoint(path, _ string) (_ *source, err error) {
	s := &saved{}
	s.log.State, err = consensus.ReadCheckpoint(path, &s.Replica)
	return s.source(), err
}

// isWALDir recognizes the directory of a log without the data directory around it.
func isWALDir(path string, info os.FileInfo, _ []byte) bool {
	segments, _ := filepath.Glob(filepath.Join(path, "*.wal")) // the only error is that of a bad pattern
	return info.IsDir() && len(segments) > 0
}

// ofLog opens a log, or a segment of it, without a checkpoint.
func ofLog(read func(path string) (consensus.SavedLog, error)) func(path, _ string) (*source, error) {
	return func(path, _ string) (*source, error) {
		log, err := read(path)
		return (&saved{log: log}).source(), err
	}
}

func (s *saved) transactions(f func(*replica.Txn) bool) error {
	s.Committed = max(s.log.Committed, 1) // 0 would mean that all are
	numbers, identities := s.number(), datatree.Identities{}
	for i := range s.log.Earlier {
		b := &s.log.Earlier[i]
		s.Term = b.Term
		for j := range b.Requests {
			r := datatree.CommittedRequest(b.Requests[j].Payload, identities)
			t := s.Txn(&b.Batch, &r)
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

// apply applies the entries after the checkpoint, and hands them to f until f returns false.
func (s *saved) apply(f func(*replica.Txn) bool) error {
	s.HandOut(f)
	for _, b := range s.log.Later {
		s.Term = b.Term
		s.Apply([]consensus.Batch{b.Batch})
	}
	return s.log.Damage
}

// number returns, for each entry up to the checkpoint, the zxid before its first request, or 0 if
// the log does not tell: a term must begin in the log, or the checkpoint must be in it.
func (s *saved) number() []proto.Zxid {
	before := make([]proto.Zxid, len(s.log.Earlier))
	if s.Tree == nil || !s.log.Sure {
		return before
	}
	last, terms, requests := s.Tree.LastZxid(), uint32(0), 0
	for i := range s.log.Earlier {
		if requests += len(s.log.Earlier[i].Requests); s.log.Earlier[i].NewTerm {
			terms, requests = terms+1, len(s.log.Earlier[i].Requests)
		}
	}
	// The last term must end at the checkpoint. If it does not begin in the log, its requests count
	// backwards from there; the rest of an earlier term without its beginning stays unknown.
	begin := last - proto.Zxid(requests)
	if requests > int(last.Counter()) || terms > 0 && begin.Counter() != 0 {
		return before
	}
	next, known := begin, terms == 0
	for i := range s.log.Earlier {
		if s.log.Earlier[i].NewTerm {
			terms--
			known = last.Epoch() >= terms
			next = proto.MakeZxid(last.Epoch()-terms, 0)
		}
		if known {
			before[i] = next
			next += proto.Zxid(len(s.log.Earlier[i].Requests))
		}
	}
	return before
}

// errNoState says that a log alone has no state.
var errNoState = errors.New("a log alone holds no znodes and no sessions: name the data directory, which has the checkpoint")

// state returns the state. A damaged log ends it early.
func (s *saved) state() (*datatree.Tree, error) {
	if s.Tree == nil {
		return nil, errNoState
	}
	err := s.apply(nil)
	return s.Tree, err
}
