package checkpoint

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
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

	"github.com/gozkd/gozkd/internal/testkit/exhaustive"
	"github.com/gozkd/gozkd/internal/testkit/vfstest"
	"github.com/gozkd/gozkd/internal/vfs"
)

// A tool reads the file of a running server for longer than a second. It reads one transaction. Two
// checkpoints wait meanwhile, and do not fail, which would stop the server.
func TestRace_ReaderOfARunningServersFile(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the file is not locked")
	}
	path := filepath.Join(t.TempDir(), "checkpoint.db")
	rng := rand.New(rand.NewPCG(9, 10))
	state := make(map[string]string)
	write := func(index uint64) error {
		d := make(delta)
		for range 300 {
			d[fmt.Sprintf("%05d", rng.IntN(1000))] = strings.Repeat(string(rune('a'+index)), rng.IntN(900))
		}
		d.to(state)
		return Merge(vfs.OS{}, path, mustBe(index-1), testMeta(index), d.Range)
	}
	for index := range uint64(4) {
		if err := write(index); err != nil {
			t.Fatal(err)
		}
	}
	want := maps.Clone(state)

	begun, goOn := make(chan struct{}), make(chan struct{})
	items := make(map[string]string)
	read := make(chan error, 1)
	// Ends when it has read; awaited below.
	go func() {
		index, err := readState(path, items, func() {
			close(begun)
			<-goOn
		})
		if err == nil && index != 3 {
			err = fmt.Errorf("the state of entry %d", index)
		}
		read <- err
	}()
	<-begun
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
	<-time.After(1500 * time.Millisecond) // longer than a reader waits for a lock
	if ended.Load() {
		t.Fatal("written while it was read:", <-written)
	}
	close(goOn)
	if err := <-read; err != nil || !maps.Equal(items, want) {
		t.Errorf("%d keys, want %d; %v", len(items), len(want), err)
	}
	if err := <-written; err != nil {
		t.Fatal(err)
	}
	clear(items)
	if index, err := readState(path, items, func() {}); err != nil || index != 5 || !maps.Equal(items, state) {
		t.Errorf("entry %d, %d keys, want %d; %v", index, len(items), len(state), err)
	}
}

// readState reads a file into items. It calls first before the first item.
func readState(path string, items map[string]string, first func()) (index uint64, err error) {
	r, err := Open(vfs.OS{}, path, NewestOfTwo)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	if index, err = testIndex(r.Meta()); err != nil {
		return 0, err
	}
	return index, r.Range(func(k, v []byte) error {
		if len(items) == 0 {
			first()
		}
		items[string(k)] = string(v)
		return nil
	})
}

// stream writes the file as a stream.
func stream(path string, w io.Writer) (err error) {
	r, err := Open(vfs.OS{}, path, Newest)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	return WriteStream(w, 1, r.Meta(), r.Range)
}

// A page is damaged while a server runs, and the checkpoint is then sent to another member. A cycle
// in the tree ends the transfer, not the process.
func TestC4_DamageWhileSending(t *testing.T) {
	path := filepath.Join(t.TempDir(), "checkpoint.db")
	d := make(delta)
	for i := range 500 {
		d[fmt.Sprintf("%05d", i)] = strings.Repeat("v", 1000)
	}
	if err := Merge(vfs.OS{}, path, mustBe(0), testMeta(1), d.Range); err != nil {
		t.Fatal(err)
	}
	var whole bytes.Buffer
	if err := stream(path, &whole); err != nil {
		t.Fatal(err)
	}
	b, page, damaged := readFile(t, path), os.Getpagesize(), 0
	for at := 2 * page; at < len(b); at += page {
		if binary.NativeEndian.Uint16(b[at+8:]) == flagBranch {
			copy(b[at+pageHeader+8:], b[at:at+8]) // its first child is itself
			damaged++
		}
	}
	if damaged == 0 {
		t.Fatal("no branch")
	}
	writeFile(t, path, b)
	mustBeCorrupt(t, path, stream(path, io.Discard))
	errGone := errors.New("gone")
	writeFile(t, path, b[:0])
	mustBeCorrupt(t, path, stream(path, io.Discard))
	if err := stream(path+" that is not there", io.Discard); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if err := Merge(vfs.OS{}, path, mustBe(0), testMeta(1), d.Range); err == nil {
		t.Error("merged into an empty file")
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := Merge(vfs.OS{}, path, mustBe(0), testMeta(1), d.Range); err != nil {
		t.Fatal(err)
	}
	for room := range whole.Len() / 20_000 { // an error of the writer must not blame the file
		if err := stream(path, &brokenPipe{20_000 * room, errGone}); !errors.Is(err, errGone) || errors.Is(err, ErrCorrupt) {
			t.Fatal(err)
		}
	}
}

// brokenPipe accepts room bytes, then fails.
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

// A reader without a lock, such as a copy of the file, is not disturbed by the next merge, which
// overwrites no page of the current transaction. The merge after that does. Then the reader gets an
// error or the same keys. Only a digest would detect changed values, which is not tested here.
func TestC4_ReaderAcrossMerges(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	f, err := vfstest.NewMem().Create("checkpoint.db")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if err := mergeDelta(f, nil, nil, 0); err != nil {
		t.Fatal(err)
	}
	merge := func(index uint64) {
		d := make(delta)
		for range 1 + rng.IntN(100) {
			d[fmt.Sprintf("%05d", rng.IntN(600))] = strings.Repeat("v", rng.IntN(900))
		}
		old, err := newPageReader(f, NewestOfTwo)
		if err != nil {
			t.Fatal(err)
		}
		if err := mergeDelta(f, old, d, index); err != nil {
			t.Fatal(err)
		}
	}
	lost := 0
	for index := uint64(1); index < exhaustive.Or[uint64](150, 400); index += 3 {
		merge(index)
		reader := func() *pageReader { // of the current transaction
			p, err := newPageReader(f, NewestOfTwo)
			if err != nil {
				t.Fatal(err)
			}
			return p
		}
		before, one, two := reader(), reader(), reader()
		keys := func(p *pageReader) (keys []string, err error) {
			_, state, err := p.buckets()
			if err == nil {
				err = p.pairs(state, func(k, v []byte) error { keys = append(keys, fmt.Sprint(string(k), len(v))); return nil })
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
		t.Error("no page of a transaction was reused: this test is ineffective")
	}
	t.Logf("after two more transactions %d were not whole", lost)
}
