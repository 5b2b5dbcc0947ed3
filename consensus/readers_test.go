package consensus

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/gozkd/gozkd/internal/vfs"
)

// slowReader is a state machine of which only Restore is used: it takes until it is told.
type slowReader struct {
	StateMachine
	begun, goOn chan struct{}
	items       map[string]string
}

func (s *slowReader) Restore(seq iter.Seq2[[]byte, []byte]) (func(), error) {
	s.items = make(map[string]string)
	for k, v := range seq {
		if len(s.items) == 0 {
			close(s.begun)
			<-s.goOn
		}
		s.items[string(k)] = string(v)
	}
	return func() {}, nil
}

// A tool reads the file of a running server, for longer than a second: it gets a state that was, and the two checkpoints that come meanwhile wait, and are
// no error, which would stop the server.
func TestC4_ReaderOfARunningServersFile(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the file is not locked")
	}
	c := checkpointFile{filepath.Join(t.TempDir(), "checkpoint.db")}
	rng := rand.New(rand.NewPCG(9, 10))
	state := make(map[string]string)
	write := func(index uint64) error {
		d := make(delta)
		for range 300 {
			d[fmt.Sprintf("%05d", rng.IntN(1000))] = strings.Repeat(string(rune('a'+index)), rng.IntN(900))
		}
		d.to(state)
		return c.write(index-1, checkpointMeta{Member: 1, Index: index, Conf: &raftpb.ConfState{}}, d)
	}
	for index := range uint64(4) {
		if err := write(index); err != nil {
			t.Fatal(err)
		}
	}
	want := maps.Clone(state)

	sm := &slowReader{begun: make(chan struct{}), goOn: make(chan struct{})}
	read := make(chan error, 1)
	// Ends when it has read; awaited below.
	go func() {
		held, err := ReadCheckpoint(c.path, sm)
		if err == nil && held.Index != 3 {
			err = fmt.Errorf("the state of entry %d", held.Index)
		}
		read <- err
	}()
	<-sm.begun
	var ended atomic.Bool
	written := make(chan error, 1)
	// Ends when both are written; awaited below.
	go func() {
		err := write(4)
		if err == nil {
			err = write(5)
		}
		ended.Store(true)
		written <- err
	}()
	<-time.After(1500 * time.Millisecond) // longer than bbolt would wait
	if ended.Load() {
		t.Fatal("written while it was read:", <-written)
	}
	close(sm.goOn)
	if err := <-read; err != nil || !maps.Equal(sm.items, want) {
		t.Errorf("%d keys, want %d; %v", len(sm.items), len(want), err)
	}
	if err := <-written; err != nil {
		t.Fatal(err)
	}
	after := &slowReader{begun: make(chan struct{}), goOn: sm.goOn}
	if held, err := ReadCheckpoint(c.path, after); err != nil || held.Index != 5 || !maps.Equal(after.items, state) {
		t.Errorf("entry %d, %d keys, want %d; %v", held.Index, len(after.items), len(state), err)
	}
}

// A page is damaged while a server runs, and then its checkpoint is sent to another member: a tree that goes round in a circle ends that, and not the process.
func TestC4_DamageWhileSending(t *testing.T) {
	c := checkpointFile{filepath.Join(t.TempDir(), "checkpoint.db")}
	d := make(delta)
	for i := range 500 {
		d[fmt.Sprintf("%05d", i)] = strings.Repeat("v", 1000)
	}
	if err := c.write(0, checkpointMeta{Member: 1, Index: 1, Conf: &raftpb.ConfState{}}, d); err != nil {
		t.Fatal(err)
	}
	var whole bytes.Buffer
	if err := c.stream(&whole, 1); err != nil {
		t.Fatal(err)
	}
	b, page, damaged := readFile(t, c.path), os.Getpagesize(), 0
	for at := 2 * page; at < len(b); at += page {
		if binary.NativeEndian.Uint16(b[at+8:]) == pageBranch {
			copy(b[at+pageHead+8:], b[at:at+8]) // its first child is itself
			damaged++
		}
	}
	if damaged == 0 {
		t.Fatal("no branch")
	}
	writeFile(t, c.path, b)
	mustBeCorrupt(t, c.path, c.stream(io.Discard, 1))
	errGone := errors.New("gone")
	writeFile(t, c.path, b[:0])
	mustBeCorrupt(t, c.path, c.stream(io.Discard, 1))
	if err := (checkpointFile{c.path + " that is not there"}).stream(io.Discard, 1); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if err := c.write(0, checkpointMeta{Member: 1, Index: 1, Conf: &raftpb.ConfState{}}, d); err == nil {
		t.Error("merged into an empty file")
	}
	if err := os.Remove(c.path); err != nil {
		t.Fatal(err)
	}
	if err := c.write(0, checkpointMeta{Member: 1, Index: 1, Conf: &raftpb.ConfState{}}, d); err != nil {
		t.Fatal(err)
	}
	for room := range whole.Len() / 20_000 { // the other member's affair is not the file's
		if err := c.stream(&brokenPipe{20_000 * room, errGone}, 1); !errors.Is(err, errGone) || errors.Is(err, ErrCorruptCheckpoint) {
			t.Fatal(err)
		}
	}
}

// brokenPipe takes so many bytes.
type brokenPipe struct {
	room int
	err  error
}

func (p *brokenPipe) Write(b []byte) (int, error) {
	if len(b) > p.room {
		return 0, p.err
	}
	p.room -= len(b)
	return len(b), nil
}

// A reader without a lock, such as a copy of the file: the next merge takes nothing from the transaction that it stands on. The one after that does, and
// what it reads then is an error or as it was: by the pages, or for values by the digest, which is not tried here.
func TestC4_ReaderAcrossMerges(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	f, err := vfs.NewMem().Create("checkpoint.db")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if err := mergeDelta(f, nil, nil, 0, false); err != nil {
		t.Fatal(err)
	}
	merge := func(index uint64) {
		d := make(delta)
		for range 1 + rng.IntN(100) {
			d[fmt.Sprintf("%05d", rng.IntN(600))] = strings.Repeat("v", rng.IntN(900))
		}
		old, err := openPages(f, true)
		if err != nil {
			t.Fatal(err)
		}
		if err := mergeDelta(f, old, d, index, false); err != nil {
			t.Fatal(err)
		}
	}
	lost := 0
	for index := uint64(1); index < 400; index += 3 {
		merge(index)
		reader := func() *pages { // of the transaction now
			p, err := openPages(f, true)
			if err != nil {
				t.Fatal(err)
			}
			return p
		}
		before, one, two := reader(), reader(), reader()
		keys := func(p *pages) (keys []string, err error) {
			buckets, err := p.buckets()
			if err == nil {
				err = p.pairs(buckets[1], func(k, v []byte) error { keys = append(keys, fmt.Sprint(string(k), len(v))); return nil })
			}
			return keys, err
		}
		want, err := keys(before)
		if err != nil {
			t.Fatal(err)
		}
		merge(index + 1)
		if got, err := keys(one); err != nil || !slices.Equal(got, want) {
			t.Fatalf("transaction %d, after one more: %d keys, want %d; %v", index, len(got), len(want), err)
		}
		merge(index + 2)
		if got, err := keys(two); err != nil || !slices.Equal(got, want) {
			lost++
		}
	}
	if lost == 0 {
		t.Error("no page of a transaction was used again: this tries nothing")
	}
	t.Logf("after two more transactions %d were not whole", lost)
}
