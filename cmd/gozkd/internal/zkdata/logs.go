package zkdata

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"os"

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

// logsFrom returns the logs that may have the transaction of a zxid, and later ones.
func (d *Directory) logsFrom(zxid proto.Zxid) *logFiles {
	first := 0
	for i, f := range d.Logs {
		if f.Zxid <= zxid {
			first = i
		}
	}
	return &logFiles{files: d.Logs[first:]}
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
