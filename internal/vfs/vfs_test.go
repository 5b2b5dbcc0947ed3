package vfs_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/gozkd/gozkd/internal/testkit/vfstest"
	"github.com/gozkd/gozkd/internal/vfs"
)

// Both file systems obey the same contract.
func TestFS_Contract(t *testing.T) {
	for name, fsys := range map[string]vfs.FS{
		"os": vfs.OS{}, "mem": vfstest.NewMem(), "faulty": vfstest.NewFaulty(vfstest.NewMem(), func(vfstest.Op) error { return nil }),
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "a", "b")
			must(t, fsys.MkdirAll(dir))
			must(t, fsys.MkdirAll(dir))
			path := filepath.Join(dir, "file")
			if _, err := fsys.Open(path); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("Open of nothing: got %v", err)
			}
			if _, err := fsys.OpenRW(path); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("OpenRW of nothing: got %v", err)
			}
			if err := fsys.Remove(path); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("Remove of nothing: got %v", err)
			}
			f, err := fsys.Create(path)
			must(t, err)
			_, err = f.WriteAt([]byte("world"), 7)
			must(t, err)
			_, err = f.WriteAt([]byte("hello"), 0)
			must(t, err)
			must(t, f.Preallocate(12, 5000))
			must(t, f.Sync())
			size, err := f.Size()
			must(t, err)
			if size != 5012 {
				t.Errorf("size is %d, want 5012", size)
			}
			must(t, f.Close())
			if err := f.Sync(); err == nil {
				t.Error("a closed file was synced")
			}

			must(t, fsys.Rename(path, filepath.Join(dir, "renamed")))
			must(t, fsys.SyncDir(dir))
			names, err := fsys.ReadDir(dir)
			must(t, err)
			if !slices.Equal(names, []string{"renamed"}) {
				t.Errorf("the directory has %q", names)
			}
			f, err = fsys.Open(filepath.Join(dir, "renamed"))
			must(t, err)
			buf := make([]byte, 14)
			n, err := f.ReadAt(buf, 0)
			if n != 14 || err != nil || string(buf) != "hello\x00\x00world\x00\x00" {
				t.Errorf("read %q, %v", buf[:n], err)
			}
			if n, err := f.ReadAt(buf, 5010); n != 2 || !errors.Is(err, io.EOF) {
				t.Errorf("read %d bytes at the end, %v", n, err)
			}
			if _, err := f.WriteAt(buf, 0); err == nil {
				t.Error("a file that was opened for reading was written")
			}
			must(t, f.Close())
			must(t, fsys.Remove(filepath.Join(dir, "renamed")))
		})
	}
}

// TestFS_InPlace checks that an open file and a lock notice that their names lead elsewhere.
func TestFS_InPlace(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("open files can't be removed or renamed")
	}
	mem, dirs := vfstest.NewMem(), 0
	both := func(disk vfs.FS, remove, replace func(string)) []func(dir string) {
		return []func(string){
			func(string) {},
			func(dir string) { must(t, disk.Remove(filepath.Join(dir, "file"))) },
			func(dir string) { must(t, disk.Rename(filepath.Join(dir, "other"), filepath.Join(dir, "file"))) },
			remove, replace,
		}
	}
	onOS := both(vfs.OS{}, func(dir string) { must(t, os.RemoveAll(dir)) }, func(dir string) {
		must(t, os.Rename(dir, dir+".old"))
		must(t, os.CopyFS(dir, os.DirFS(dir+".old")))
	})
	onOS = append(onOS, func(dir string) { must(t, os.Remove(filepath.Join(dir, "LOCK"))) }, func(dir string) {
		must(t, os.Rename(dir, dir+".old"))
		must(t, os.WriteFile(dir, nil, 0o600))
	})
	want := []struct{ file, lock error }{
		{nil, nil}, {fs.ErrNotExist, nil}, {vfs.ErrReplaced, nil}, {fs.ErrNotExist, fs.ErrNotExist},
		{vfs.ErrReplaced, vfs.ErrReplaced}, {nil, fs.ErrNotExist}, {vfs.ErrReplaced, vfs.ErrReplaced},
	}
	for name, tc := range map[string]struct {
		disk vfs.FS
		do   []func(string)
	}{
		"os": {vfs.OS{}, onOS}, "mem": {mem, both(mem, mem.RemoveAll, mem.Replace)},
		"patient": {vfs.Patient(vfs.OS{}, func(error) {}), onOS},
		"faulty":  {vfstest.NewFaulty(mem, func(vfstest.Op) error { return nil }), both(mem, mem.RemoveAll, mem.Replace)},
	} {
		for i, do := range tc.do {
			dirs++
			dir := filepath.Join(t.TempDir(), fmt.Sprint(dirs))
			must(t, tc.disk.MkdirAll(dir))
			lock, err := tc.disk.Lock(filepath.Join(dir, "LOCK"))
			must(t, err)
			f, err := tc.disk.Create(filepath.Join(dir, "file"))
			must(t, err)
			must(t, vfs.WriteFile(tc.disk, filepath.Join(dir, "other"), nil))
			do(dir)
			if err := f.InPlace(); !errors.Is(err, want[i].file) {
				t.Errorf("%s, case %d: the file: %v, want %v", name, i, err, want[i].file)
			}
			if err := lock.InPlace(); !errors.Is(err, want[i].lock) {
				t.Errorf("%s, case %d: the lock: %v, want %v", name, i, err, want[i].lock)
			}
			must(t, f.Close())
			must(t, lock.Close())
		}
	}
}

// A lock that another process holds is refused with that process's id, and is free after the
// process has died.
func TestOS_LockNamesTheHolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "LOCK")
	if p := os.Getenv("VFS_TEST_LOCK"); p != "" {
		if _, err := (vfs.OS{}).Lock(p); err != nil {
			t.Fatal(err)
		}
		fmt.Println("locked")
		_, _ = io.Copy(io.Discard, os.Stdin) // until the parent ends this process
		return
	}
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestOS_LockNamesTheHolder$")
	child.Env = append(os.Environ(), "VFS_TEST_LOCK="+path, "GORACE=atexit_sleep_ms=0")
	stdin, err := child.StdinPipe()
	must(t, err)
	stdout, err := child.StdoutPipe()
	must(t, err)
	must(t, child.Start())
	ready := make([]byte, 7)
	_, err = io.ReadFull(stdout, ready)
	must(t, err)

	_, err = vfs.OS{}.Lock(path)
	if !errors.Is(err, vfs.ErrLocked) || !strings.Contains(err.Error(), fmt.Sprintf("(held by process %d): in use: stop the process", child.Process.Pid)) {
		t.Errorf("got %v, want ErrLocked by process %d, and a remedy", err, child.Process.Pid)
	}
	must(t, stdin.Close())
	must(t, child.Wait())
	lock, err := vfs.OS{}.Lock(path)
	must(t, err)
	if _, err := (vfs.OS{}).Lock(path); !errors.Is(err, vfs.ErrLocked) {
		t.Errorf("a second lock in one process: got %v", err)
	}
	must(t, lock.Close())
}

// A lock file that is a symbolic link is refused, and its target stays as it is.
func TestOS_LockFollowsNoLink(t *testing.T) {
	dir := t.TempDir()
	target, path := filepath.Join(dir, "precious"), filepath.Join(dir, "LOCK")
	must(t, os.WriteFile(target, []byte("precious"), 0o600))
	if err := os.Symlink(target, path); err != nil {
		t.Skip(err) // needs a privilege on Windows
	}
	for name, lock := range map[string]func(string) (io.Closer, error){"Lock": func(path string) (io.Closer, error) { return vfs.OS{}.Lock(path) }, "LockForReading": vfs.LockForReading} {
		if l, err := lock(path); err == nil {
			t.Errorf("%s followed the link", name)
			must(t, l.Close())
		} else if !strings.Contains(err.Error(), "remove it") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if text, err := os.ReadFile(target); err != nil || string(text) != "precious" {
		t.Errorf("the target holds %q, %v", text, err)
	}
	must(t, os.Remove(target)) // a link to nothing must not create its target either
	if _, err := (vfs.OS{}).Lock(path); err == nil {
		t.Error("a link to nothing is followed")
	}
}

func TestMem_CrashLosesWhatWasNotSynced(t *testing.T) {
	m := vfstest.NewMem()
	write := func(name, data string, off int64) vfs.File {
		f, err := m.OpenRW(name)
		if errors.Is(err, fs.ErrNotExist) {
			f, err = m.Create(name)
		}
		must(t, err)
		_, err = f.WriteAt([]byte(data), off)
		must(t, err)
		return f
	}
	must(t, write("synced", "old", 0).Sync())
	write("nameless", "x", 0) // neither data nor name is synced
	must(t, write("data only", "x", 0).Sync())
	must(t, write("to be moved", "x", 0).Sync())
	write("name only", "lost", 0)
	must(t, m.Remove("nameless"))
	must(t, m.SyncDir("."))
	write("synced", "new", 0)
	must(t, m.Rename("to be moved", "moved"))
	must(t, m.Remove("data only"))

	for _, c := range []struct {
		choose func(int) int
		want   map[string]string
	}{
		{lose, map[string]string{"synced": "old", "data only": "x", "to be moved": "x", "name only": ""}},
		{keep, map[string]string{"synced": "new", "moved": "x", "name only": "lost"}},
	} {
		after := m.Crash(c.choose)
		if got := contents(t, after); fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("got %q, want %q", got, c.want)
		}
		// All that a crash left is on disk.
		if got := contents(t, after.Crash(lose)); fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("after the next crash: got %q, want %q", got, c.want)
		}
	}
	if got := contents(t, m)["synced"]; got != "new" {
		t.Errorf("the file system that was cloned has %q", got)
	}
}

// Each sector holds one of its versions, never a mixture of two.
func TestMem_CrashTearsAtSectors(t *testing.T) {
	m := vfstest.NewMem()
	f, err := m.Create("f")
	must(t, err)
	must(t, f.Preallocate(0, 1536))
	must(t, f.Sync())
	must(t, m.SyncDir("."))
	for _, b := range []byte("ab") {
		_, err = f.WriteAt(bytes.Repeat([]byte{b}, 600), 500)
		must(t, err)
	}
	// One choice for each of the sectors 0, 1 and 2, among three versions each.
	seen := map[string]bool{}
	for i := range 27 {
		q := i
		after := contents(t, m.Crash(func(n int) int {
			if n != 3 {
				t.Fatalf("a question with %d answers, want 3", n)
			}
			a := q % 3
			q /= 3
			return a
		}))["f"]
		seen[string([]byte{after[500], after[600], after[1050]})] = true
		for _, part := range []string{after[500:512], after[512:1024], after[1024:1100]} {
			if strings.Count(part, part[:1]) != len(part) {
				t.Errorf("a sector holds a mixture: %q", part)
			}
		}
	}
	if len(seen) != 27 {
		t.Errorf("%d outcomes, want 27: %v", len(seen), seen)
	}
}

func TestMem_KillKeepsTheCache(t *testing.T) {
	m := vfstest.NewMem()
	f, err := m.Create("f")
	must(t, err)
	must(t, m.SyncDir("."))
	_, err = f.WriteAt([]byte("cached"), 0)
	must(t, err)
	if _, err = m.Lock("LOCK"); err != nil {
		t.Fatal(err)
	}
	m.Kill()
	if _, err := f.WriteAt([]byte("late"), 0); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("a dead process's write: got %v", err)
	}
	lock, err := m.Lock("LOCK")
	must(t, err)
	must(t, lock.Close())
	if got := contents(t, m)["f"]; got != "cached" {
		t.Errorf("the next process reads %q", got)
	}
	if got := contents(t, m.Crash(lose))["f"]; got != "" {
		t.Errorf("what was not synced outlived the power: %q", got)
	}
}

func TestMem_LoseUnsynced(t *testing.T) {
	m := vfstest.NewMem()
	f, err := m.Create("f")
	must(t, err)
	must(t, m.SyncDir("."))
	_, err = f.WriteAt([]byte("x"), 0)
	must(t, err)
	m.LoseUnsynced("f")
	must(t, f.Sync())
	if got := contents(t, m)["f"]; got != "x" {
		t.Errorf("the cache has %q", got)
	}
	if got := contents(t, m.Crash(lose))["f"]; got != "" {
		t.Errorf("the disk has %q", got)
	}
}

func TestFaulty_FailsWhatTheHookPicks(t *testing.T) {
	errDisk := errors.New("disk error")
	var fail vfstest.OpKind
	mem := vfstest.NewMem()
	y := vfstest.NewFaulty(mem, func(op vfstest.Op) error {
		if op.Kind != fail {
			return nil
		}
		if op.Kind == vfstest.OpWrite {
			return &vfstest.ShortWrite{N: 2, Err: errDisk}
		}
		return errDisk
	})
	f, err := y.Create("f")
	must(t, err)
	for kind, op := range map[vfstest.OpKind]func() error{
		vfstest.OpCreate:      func() error { _, err := y.Create("g"); return err },
		vfstest.OpOpen:        func() error { _, err := y.Open("f"); return err },
		vfstest.OpRemove:      func() error { return y.Remove("f") },
		vfstest.OpRename:      func() error { return y.Rename("f", "g") },
		vfstest.OpReadDir:     func() error { _, err := y.ReadDir("."); return err },
		vfstest.OpMkdirAll:    func() error { return y.MkdirAll("d") },
		vfstest.OpSyncDir:     func() error { return y.SyncDir(".") },
		vfstest.OpLock:        func() error { _, err := y.Lock("l"); return err },
		vfstest.OpRead:        func() error { _, err := f.ReadAt(nil, 0); return err },
		vfstest.OpWrite:       func() error { _, err := f.WriteAt([]byte("abc"), 0); return err },
		vfstest.OpSync:        f.Sync,
		vfstest.OpPreallocate: func() error { return f.Preallocate(0, 10) },
	} {
		fail = kind
		if err := op(); !errors.Is(err, errDisk) {
			t.Errorf("%s: got %v", kind, err)
		}
	}
	if got := contents(t, mem); fmt.Sprint(got) != fmt.Sprint(map[string]string{"f": "ab"}) {
		t.Errorf("the failed operations left %q, want just the short write", got)
	}
}

func lose(int) int   { return 0 }
func keep(n int) int { return n - 1 }

func contents(t *testing.T, m *vfstest.Mem) map[string]string {
	t.Helper()
	names, err := m.ReadDir(".")
	must(t, err)
	files := map[string]string{}
	for _, name := range names {
		f, err := m.Open(name)
		must(t, err)
		size, err := f.Size()
		must(t, err)
		buf := make([]byte, size)
		if _, err := f.ReadAt(buf, 0); size > 0 {
			must(t, err)
		}
		files[name] = string(buf)
	}
	return files
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestLockForReading(t *testing.T) {
	name := filepath.Join(t.TempDir(), "LOCK")
	none, err := vfs.LockForReading(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := none.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(name); err == nil {
		t.Error("it made the file")
	}
	held, err := vfs.OS{}.Lock(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := vfs.LockForReading(name); !errors.Is(err, vfs.ErrLocked) {
		t.Errorf("while it is held: %v", err)
	}
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	var readers [2]io.Closer
	for i := range readers {
		if readers[i], err = vfs.LockForReading(name); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := (vfs.OS{}).Lock(name); !errors.Is(err, vfs.ErrLocked) {
		t.Errorf("while it is read: %v", err)
	}
	for _, r := range readers {
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
	again, err := vfs.OS{}.Lock(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}
