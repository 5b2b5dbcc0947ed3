package vfstest

import (
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"sync"

	"github.com/gozkd/gozkd/internal/vfs"
)

// sectorBytes is the unit that the modeled disk writes atomically.
const sectorBytes = 512

// Mem is a file system in memory that records what was synced. [Mem.Crash] simulates a power loss,
// [Mem.Kill] the death of the process alone. Use [NewMem].
//
// The model of a power loss:
//
//   - All that was synced survives.
//   - A sector (512 bytes) that was written n times since the last Sync holds its content after 0,
//     1, … or n of these writes, independently of all other sectors.
//   - A file that has grown has its old size, its new size, or the size that the surviving sectors
//     need, with zeros in between.
//   - Any subset of the unsynced changes of a directory survives. A directory made by MkdirAll
//     survives.
type Mem struct {
	mu    sync.Mutex
	dirs  map[string]*memDir
	locks map[string]*memLock
	life  *int // identity of the running process: handles of earlier processes fail
}

type memDir struct {
	names   map[string]*memInode // now
	durable map[string]*memInode // at the last SyncDir
	changes []memChange          // since then, in order
}

// memChange is a creation, removal or rename: it binds name to inode and unbinds old from it. "" is
// no name.
type memChange struct {
	inode     *memInode
	old, name string
}

type memInode struct {
	data    []byte     // now
	durable []byte     // at the last Sync
	writes  []memWrite // since then, in order
}

// memWrite is a write, or, if truncate is set, the truncation of the file to 0 bytes.
type memWrite struct {
	off      int64
	data     []byte
	truncate bool
}

type memFile struct {
	m        *Mem
	life     *int
	path     string
	inode    *memInode
	writable bool
	closed   bool
}

type memLock struct {
	m    *Mem
	path string
	dir  *memDir
}

// NewMem returns an empty file system with the directories "/" and ".".
func NewMem() *Mem {
	return &Mem{
		dirs:  map[string]*memDir{string(filepath.Separator): newMemDir(), ".": newMemDir()},
		locks: map[string]*memLock{},
		life:  new(int),
	}
}

// Crash returns the file system as a power loss at this moment could leave it, and does not change
// m. choose(n) decides what survives: it must return a number from 0 (nothing unsynced) to n-1
// (everything). The order of the calls is fixed, so a seeded Rand.IntN of math/rand/v2 reproduces a
// crash.
func (m *Mem) Crash(choose func(n int) int) *Mem {
	m.mu.Lock()
	defer m.mu.Unlock()
	after := NewMem()
	moved := map[*memInode]*memInode{}
	for _, path := range slices.Sorted(maps.Keys(m.dirs)) {
		d := newMemDir()
		names := m.dirs[path].crash(choose)
		for _, name := range slices.Sorted(maps.Keys(names)) {
			inode := names[name]
			if moved[inode] == nil {
				moved[inode] = inode.crash(choose)
			}
			d.names[name], d.durable[name] = moved[inode], moved[inode]
		}
		after.dirs[path] = d
	}
	return after
}

// Kill simulates the sudden death of the process that used m: locks are released, and operations on
// open files return [fs.ErrClosed]. Unsynced writes stay visible, and stay unsynced.
func (m *Mem) Kill() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.locks = map[string]*memLock{}
	m.life = new(int)
}

// LoseUnsynced marks the writes to the file since its last Sync as clean, although they are not on
// disk: they can be read, no later Sync writes them, and a power loss discards them. Linux does
// this to pages whose write-back has failed.
func (m *Mem) LoseUnsynced(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if d, base, err := m.dirOf("lose", name); err == nil && d.names[base] != nil {
		d.names[base].writes = nil
	}
}

// Create implements [vfs.FS].
func (m *Mem) Create(name string) (vfs.File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	d, base, err := m.dirOf("create", name)
	if err != nil {
		return nil, err
	}
	inode := d.names[base]
	if inode == nil {
		inode = &memInode{}
		d.change(memChange{inode: inode, name: base})
	} else {
		inode.write(memWrite{truncate: true})
	}
	return &memFile{m: m, life: m.life, path: name, inode: inode, writable: true}, nil
}

// Open implements [vfs.FS].
func (m *Mem) Open(name string) (vfs.File, error) { return m.open(name, false) }

// OpenRW implements [vfs.FS].
func (m *Mem) OpenRW(name string) (vfs.File, error) { return m.open(name, true) }

// Remove implements [vfs.FS].
func (m *Mem) Remove(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	d, base, err := m.dirOf("remove", name)
	if err != nil {
		return err
	}
	inode := d.names[base]
	if inode == nil {
		return &fs.PathError{Op: "remove", Path: name, Err: fs.ErrNotExist}
	}
	d.change(memChange{inode: inode, old: base})
	return nil
}

// Rename implements [vfs.FS].
func (m *Mem) Rename(oldName, newName string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	d, oldBase, err := m.dirOf("rename", oldName)
	if err != nil {
		return err
	}
	to, newBase, err := m.dirOf("rename", newName)
	if err != nil {
		return err
	}
	if to != d {
		return &fs.PathError{Op: "rename", Path: newName, Err: fs.ErrInvalid}
	}
	inode := d.names[oldBase]
	if inode == nil {
		return &fs.PathError{Op: "rename", Path: oldName, Err: fs.ErrNotExist}
	}
	d.change(memChange{inode: inode, old: oldBase, name: newBase})
	return nil
}

// ReadDir implements [vfs.FS].
func (m *Mem) ReadDir(dir string) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	d := m.dirs[filepath.Clean(dir)]
	if d == nil {
		return nil, &fs.PathError{Op: "readdir", Path: dir, Err: fs.ErrNotExist}
	}
	return slices.Sorted(maps.Keys(d.names)), nil
}

// MkdirAll implements [vfs.FS].
func (m *Mem) MkdirAll(dir string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for dir = filepath.Clean(dir); m.dirs[dir] == nil; dir = filepath.Dir(dir) {
		m.dirs[dir] = newMemDir()
	}
	return nil
}

// SyncDir implements [vfs.FS].
func (m *Mem) SyncDir(dir string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	d := m.dirs[filepath.Clean(dir)]
	if d == nil {
		return &fs.PathError{Op: "syncdir", Path: dir, Err: fs.ErrNotExist}
	}
	for _, c := range d.changes {
		c.apply(d.durable)
	}
	d.changes = nil
	return nil
}

// Lock implements [vfs.FS]. It makes no lock file, since nothing would read the file.
func (m *Mem) Lock(name string) (vfs.Lock, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	path := filepath.Clean(name)
	if m.locks[path] != nil {
		return nil, fmt.Errorf("vfs: lock %s: %w", name, vfs.ErrLocked)
	}
	l := &memLock{m: m, path: path, dir: m.dirs[filepath.Dir(path)]}
	m.locks[path] = l
	return l, nil
}

func (l *memLock) Close() error {
	l.m.mu.Lock()
	defer l.m.mu.Unlock()
	if l.m.locks[l.path] == l { // otherwise the process was killed, and another process holds the lock
		delete(l.m.locks, l.path)
	}
	return nil
}

func (f *memFile) ReadAt(p []byte, off int64) (int, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if err := f.usable("read", false); err != nil {
		return 0, err
	}
	if off >= int64(len(f.inode.data)) {
		return 0, io.EOF
	}
	n := copy(p, f.inode.data[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (f *memFile) WriteAt(p []byte, off int64) (int, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if err := f.usable("write", true); err != nil {
		return 0, err
	}
	f.inode.write(memWrite{off: off, data: slices.Clone(p)})
	return len(p), nil
}

func (f *memFile) Preallocate(off, n int64) error {
	_, err := f.WriteAt(make([]byte, n), off)
	return err
}

func (f *memFile) Sync() error {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if err := f.usable("sync", false); err != nil {
		return err
	}
	for _, w := range f.inode.writes {
		f.inode.durable = w.apply(f.inode.durable)
	}
	f.inode.writes = nil
	return nil
}

func (f *memFile) Size() (int64, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if err := f.usable("stat", false); err != nil {
		return 0, err
	}
	return int64(len(f.inode.data)), nil
}

func (f *memFile) Close() error {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if f.closed {
		return &fs.PathError{Op: "close", Path: f.path, Err: fs.ErrClosed}
	}
	f.closed = true
	return nil
}

func (f *memFile) usable(op string, write bool) error {
	if f.closed || f.life != f.m.life {
		return &fs.PathError{Op: op, Path: f.path, Err: fs.ErrClosed}
	}
	if write && !f.writable {
		return &fs.PathError{Op: op, Path: f.path, Err: fs.ErrPermission}
	}
	return nil
}

func (m *Mem) open(name string, writable bool) (vfs.File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	d, base, err := m.dirOf("open", name)
	if err != nil {
		return nil, err
	}
	inode := d.names[base]
	if inode == nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return &memFile{m: m, life: m.life, path: name, inode: inode, writable: writable}, nil
}

func (m *Mem) dirOf(op, name string) (*memDir, string, error) {
	d := m.dirs[filepath.Dir(filepath.Clean(name))]
	if d == nil {
		return nil, "", &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
	}
	return d, filepath.Base(name), nil
}

func newMemDir() *memDir {
	return &memDir{names: map[string]*memInode{}, durable: map[string]*memInode{}}
}

func (d *memDir) change(c memChange) {
	c.apply(d.names)
	d.changes = append(d.changes, c)
}

func (d *memDir) crash(choose func(int) int) map[string]*memInode {
	names := maps.Clone(d.durable)
	for _, c := range d.changes {
		if choose(2) == 1 {
			c.apply(names)
		}
	}
	return names
}

func (c memChange) apply(names map[string]*memInode) {
	if c.old != "" && names[c.old] == c.inode {
		delete(names, c.old)
	}
	if c.name != "" {
		names[c.name] = c.inode
	}
}

func (n *memInode) write(w memWrite) {
	n.data = w.apply(n.data)
	n.writes = append(n.writes, w)
}

func (n *memInode) crash(choose func(int) int) *memInode {
	data := slices.Clone(n.durable)
	// A truncation that survives discards all earlier writes. If the truncation is lost, the later
	// writes apply to the old data.
	writes := n.writes
	for i := len(writes) - 1; i >= 0; i-- {
		if !writes[i].truncate {
			continue
		}
		if choose(2) == 1 {
			data = data[:0]
			writes = writes[i+1:]
			break
		}
	}
	data = crashSectors(data, writes, choose)
	if size := len(n.data); size > len(data) && choose(2) == 1 {
		data = append(data, make([]byte, size-len(data))...)
	}
	return &memInode{data: data, durable: slices.Clone(data)}
}

// crashSectors chooses for each sector how many of its writes survive.
func crashSectors(data []byte, writes []memWrite, choose func(int) int) []byte {
	touched := map[int64]int{}
	end := int64(0)
	for _, w := range writes {
		if len(w.data) == 0 {
			continue
		}
		end = max(end, w.off+int64(len(w.data)))
		for s := w.off / sectorBytes; s*sectorBytes < w.off+int64(len(w.data)); s++ {
			touched[s]++
		}
	}
	keep := make(map[int64]int, len(touched))
	for s := int64(0); s*sectorBytes < end; s++ {
		if n := touched[s]; n > 0 {
			keep[s] = choose(n + 1)
		}
	}
	for _, w := range writes {
		for from := w.off; from < w.off+int64(len(w.data)); {
			s := from / sectorBytes
			to := min((s+1)*sectorBytes, w.off+int64(len(w.data)))
			if keep[s] > 0 {
				keep[s]--
				data = memWrite{off: from, data: w.data[from-w.off : to-w.off]}.apply(data)
			}
			from = to
		}
	}
	return data
}

func (w memWrite) apply(data []byte) []byte {
	if w.truncate {
		return data[:0]
	}
	if grow := w.off + int64(len(w.data)) - int64(len(data)); grow > 0 {
		data = append(data, make([]byte, grow)...)
	}
	copy(data[w.off:], w.data)
	return data
}
