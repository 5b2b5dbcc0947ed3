package zkdata

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/gozkd/gozkd/internal/memberid"
	"github.com/gozkd/gozkd/proto"
)

// Directory lists the files of a ZooKeeper server.
type Directory struct {
	Name      string // as the user gave it
	Snapshots []File // newest first
	Logs      []File // oldest first
	ID        uint64 // of the file myid, see package memberid; 0 without it
	logDir    string // holds Logs
	epoch     uint32 // of currentEpoch; 0 without it
}

// File is a snapshot or log.
type File struct {
	Path string
	Zxid proto.Zxid // in its name
}

// Find lists the files of a server whose directories are given as DIR or DIR:LOGDIR. Each
// may be the directory that the configuration names, or version-2 in it.
func Find(arg string) (*Directory, error) {
	dir, logDir, err := splitDirs(arg)
	if err != nil {
		return nil, err
	}
	d, err := directoryAt(dir, logDir)
	if err != nil {
		return nil, err
	}
	d.Name = arg
	return d, nil
}

// directoryAt lists the files of a server. logDir "" means dir.
func directoryAt(dir, logDir string) (d *Directory, err error) {
	logDir = cmp.Or(logDir, dir)
	d, dir, logDir = &Directory{Name: dir}, versioned(dir), versioned(logDir)
	if d.logDir = logDir; filepath.Base(dir) == "version-2" {
		if n, ok := numberIn(filepath.Dir(dir), "myid"); ok {
			d.ID = memberid.Of(n)
		}
	}
	if d.Snapshots, err = list(dir, "snapshot."); err != nil {
		return nil, err
	}
	if d.Logs, err = list(logDir, "log."); err != nil {
		return nil, err
	}
	if err := d.apart(dir, logDir); err != nil {
		return nil, err
	}
	slices.Reverse(d.Snapshots)
	if len(d.Snapshots)+len(d.Logs) == 0 {
		return nil, fmt.Errorf("%s holds no snapshot.* and no log.*, neither itself nor in version-2: name the dataDir of a ZooKeeper server", d.Name)
	}
	epoch, _ := numberIn(dir, "currentEpoch")
	d.epoch = uint32(epoch)
	return d, nil
}

// apart returns an error if logs are in the directory of the snapshots, or snapshots in that of the
// logs, when these differ: the state may be in files that nobody reads. ZooKeeper does not start
// then. Source: FileTxnSnapLog.checkSnapDir.
func (d *Directory) apart(dir, logDir string) error {
	x, err := os.Stat(dir)
	y, err2 := os.Stat(logDir)
	if err := errors.Join(err, err2); err != nil || os.SameFile(x, y) {
		return err
	}
	logs, err := list(dir, "log.")
	snapshots, err2 := list(logDir, "snapshot.")
	for _, f := range append(logs, snapshots...) {
		return fmt.Errorf("%s is in the wrong directory, if dataDir and dataLogDir differ: "+
			"name the two as in zoo.cfg; if they are right, move away what an earlier configuration left there", f.Path)
	}
	return errors.Join(err, err2)
}

// numberIn returns the number in a file. ok is false if there is no file, or no number in it.
func numberIn(dir, file string) (n uint64, ok bool) {
	text, _ := os.ReadFile(filepath.Join(dir, file)) // "" is no number
	n, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 32)
	return n, err == nil
}

// SameServer reports whether two directories are those of one server, as far as they show it.
func SameServer(a, b *Directory) bool {
	x, err := os.Stat(a.logDir)
	y, err2 := os.Stat(b.logDir)
	return a.ID != 0 && a.ID == b.ID || err == nil && err2 == nil && os.SameFile(x, y)
}

// splitDirs returns the directories with the files. A colon in a name, as on Windows, is no
// separator if a directory of the whole name exists.
func splitDirs(arg string) (dir, logDir string, err error) {
	if isDir(arg) {
		return arg, arg, nil
	}
	for i := range len(arg) {
		if arg[i] == ':' && isDir(arg[:i]) {
			if !isDir(arg[i+1:]) {
				return "", "", fmt.Errorf("%s, after the colon in %s, is no directory", arg[i+1:], arg)
			}
			return arg[:i], arg[i+1:], nil
		}
	}
	return "", "", fmt.Errorf("%s: %w: name the dataDir of a ZooKeeper server, and if its dataLogDir differs, DATADIR:DATALOGDIR", arg, fs.ErrNotExist)
}

func isDir(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

func versioned(dir string) string {
	if inner := filepath.Join(dir, "version-2"); isDir(inner) {
		return inner
	}
	return dir
}

// list returns the files whose names are the prefix and a zxid, oldest first.
func list(dir, prefix string) ([]File, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var files []File
	for _, e := range entries {
		rest, ok := strings.CutPrefix(e.Name(), prefix)
		if !ok || e.IsDir() {
			continue
		}
		rest = strings.TrimSuffix(strings.TrimSuffix(rest, ".gz"), ".snappy")
		if zxid, err := strconv.ParseUint(rest, 16, 63); err == nil {
			files = append(files, File{filepath.Join(dir, e.Name()), proto.Zxid(zxid)})
		}
	}
	sort.Slice(files, func(i, j int) bool { return files[i].Zxid < files[j].Zxid })
	return files, nil
}
