package zkdata

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"

	"github.com/gozkd/gozkd/internal/zkfiles"
	"github.com/gozkd/gozkd/proto"
)

// logFiles reads log files one after the other.
type logFiles struct {
	files []File
	torn  []string // notes on incomplete records, each at the end of its file
	path  string   // of the last record
	byte  int64    // at which it begins
}

// records returns the records of all files. An error is the last element, without a record.
func (l *logFiles) records() iter.Seq2[*zkfiles.Record, error] {
	return func(yield func(*zkfiles.Record, error) bool) {
		for _, f := range l.files {
			more, err := l.read(f.Path, yield)
			switch {
			case errors.Is(err, zkfiles.ErrTorn):
				l.torn = append(l.torn, err.Error())
			case err != nil && more:
				yield(nil, err)
				return
			}
			if !more {
				return
			}
		}
	}
}

// read reads a file. more is false after yield returned false.
func (l *logFiles) read(path string, yield func(*zkfiles.Record, error) bool) (more bool, err error) {
	in, err := os.Open(path)
	if err != nil {
		return true, err
	}
	defer func() { _ = in.Close() }() // it was only read
	r, err := zkfiles.NewLogReader(in)
	for err == nil {
		var record *zkfiles.Record
		if record, err = r.Next(); err == nil {
			l.path, l.byte = path, r.Offset()
			if !yield(record, nil) {
				return false, nil
			}
		}
	}
	if errors.Is(err, io.EOF) {
		return true, nil
	}
	return true, fmt.Errorf("%s: %w", path, err)
}

// at adds the place of the last record to an error.
func (l *logFiles) at(err error) error { return fmt.Errorf("%s: at byte %d: %w", l.path, l.byte, err) }

// Absolute returns the directories of Find's argument as absolute paths, in the form of that
// argument.
func Absolute(arg string) (string, error) {
	dir, logDir, err := splitDirs(arg)
	if err != nil {
		return "", err
	}
	a, err := filepath.Abs(dir)
	b, err2 := filepath.Abs(logDir)
	if err = errors.Join(err, err2); err != nil || a == b {
		return a, err
	}
	return a + ":" + b, nil
}

// Tail calls f with the transactions in a server's logs after the transaction last, until f returns
// an error. found reports whether the server has last itself; otherwise f is not called. torn are
// notes on incomplete records.
func Tail(d *Directory, last proto.Zxid, f func(*zkfiles.Record) error) (found bool, torn []string, err error) {
	// The first zxid of an epoch is that of no transaction: a server of this epoch has what came
	// before.
	found = last.Counter() == 0 && d.epoch >= last.Epoch()
	// A server that received the state with last from its leader has no log of it.
	found = found || slices.ContainsFunc(d.Snapshots, func(s File) bool { return s.Zxid == last })
	first := 0
	for i, log := range d.Logs {
		if log.Zxid <= last {
			first = i
		}
	}
	logs := &logFiles{files: d.Logs[first:]}
	for r, err := range logs.records() {
		switch {
		case err != nil:
			return found, logs.torn, err
		case r.Zxid <= last:
			found = found || r.Zxid == last
		case !found:
			return false, logs.torn, nil
		default:
			if err := f(r); err != nil {
				return found, logs.torn, err
			}
		}
	}
	return found, logs.torn, nil
}
