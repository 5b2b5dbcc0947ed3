package consensus

import (
	"bytes"
	"errors"
	"io"
	"maps"

	"github.com/gozkd/gozkd/consensus/internal/checkpoint"
	"github.com/gozkd/gozkd/consensus/internal/core"
	"github.com/gozkd/gozkd/consensus/internal/turn"
)

func (m *simMember) StartTransfer(to []uint64, _ uint64) {
	term, generation := m.core.RaftTerm(), m.generation
	for _, id := range to {
		m.w.after(1, m, func() { m.transfer(id, term, generation) })
	}
}

func (m *simMember) CancelTransfers() { m.generation++ }

func (m *simMember) transferEnded(to uint64, ok bool) {
	m.dirty = true
	if !ok {
		m.w.stats.brokenTransfers++
	}
	m.try(m.loop.TransferEnded(to, ok))
}

// transfer sends the checkpoint that is on disk now.
func (m *simMember) transfer(id, term uint64, generation int) {
	w := m.w
	w.stats.transfers++
	var stream bytes.Buffer
	w.must(checkpoint.WriteStream(&stream, term, m.disk.checkpoint.meta, m.disk.checkpoint.pairs))
	dst := w.members[id-1]
	ended := false
	end := func(ok bool) {
		if !ended {
			ended = true
			m.transferEnded(id, ok)
		}
	}
	if !w.connected(int(m.id-1), int(id-1)) || dst.receiving || generation != m.generation {
		w.after(1+w.rng.Int64N(100), m, func() { end(false) })
		return
	}
	delay, sent := 2+w.rng.Int64N(30), stream.Bytes()
	switch {
	case w.broken > w.now && w.rng.IntN(2) == 0:
		sent = sent[:w.rng.IntN(len(sent))]
	case w.broken > w.now:
		delay += w.rng.Int64N(20_000)
	}
	delay += max(dst.hungUntil-w.now, 0)
	dst.receiving = true
	delete(dst.disk.aside, asidePath(m.id)) // the file is written anew
	lives := [2]int{m.life, dst.life}
	w.after(delay, dst, func() {
		if m.life != lives[0] || generation != m.generation || !w.connected(int(m.id-1), int(id-1)) {
			sent = sent[:w.rng.IntN(len(sent))] // the connection broke on the way
		}
		err := dst.receiveCheckpoint(m.id, bytes.NewReader(sent), len(sent) < stream.Len())
		if err != nil || w.bug == bugOneFileForTwo {
			dst.receiving = false
		}
		w.after(1, m, func() { end(err == nil) })
	})
	w.after(delay+2000, m, func() {
		if dst.life != lives[1] {
			end(false)
		}
	})
}

// receiveCheckpoint does what checkpoints.receive does.
func (m *simMember) receiveCheckpoint(from uint64, stream io.Reader, broken bool) error {
	r, err := checkpoint.ReadStream(stream)
	if err != nil {
		return err
	}
	meta, err := core.DecodeMeta(r.Meta)
	if err != nil {
		return err
	}
	got := &turn.Received{From: from, Term: r.Term, Meta: meta, Path: asidePath(from)}
	got.Meta.Member = m.id
	kv := map[string]string{}
	var streamErr error
	machine, err := restoreSimMachine(func(yield func(k, v []byte) bool) {
		streamErr = r.Range(func(k, v []byte) error {
			kv[string(k)] = string(v)
			if !yield(k, v) {
				return errors.New("the state machine stopped reading")
			}
			return nil
		})
	})
	if err := errors.Join(streamErr, err); err != nil {
		if !broken {
			m.w.fatalf("member %d: a whole checkpoint can't be read: %v", m.id, err)
		}
		return err
	}
	if broken {
		m.w.fatalf("member %d took half a checkpoint", m.id)
	}
	if err := m.disk.durableStep(); err != nil { // its sync
		m.failed(err)
		return err
	}
	if m.w.bug == bugHalfInstalled && m.disk.checkpoint != nil {
		kv = maps.Clone(m.disk.checkpoint.kv)
	}
	m.disk.aside[got.Path] = &simCheckpoint{meta: got.Meta.Append(nil), kv: kv}
	got.Install = func() error { m.machine = machine; return nil }
	if m.tight {
		got.Load = func() (err error) { // the present state is dropped first
			m.w.stats.readInPlace++
			m.machine, machine = nil, nil
			machine, err = restoreSimMachine(m.disk.checkpoint.all())
			return err
		}
	}
	if m.w.rng.IntN(2) == 0 {
		m.loop.Checkpoint()
	}
	m.loop.CheckpointReceived(got)
	m.dirty = true
	return nil
}

func (m *simMember) Discard(r *turn.Received) error {
	m.receiving = false
	delete(m.disk.aside, r.Path)
	return nil
}
