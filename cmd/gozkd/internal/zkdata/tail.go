package zkdata

import (
	"errors"
	"path/filepath"

	"github.com/gozkd/gozkd/internal/zkfiles"
	"github.com/gozkd/gozkd/proto"
)

// Absolute returns the directories of Find's argument as absolute paths, in the form of that argument.
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
// an error. found reports whether the server has last itself. torn are notes on incomplete records.
func Tail(d *Directory, last proto.Zxid, f func(*zkfiles.Record) error) (found bool, torn []string, err error) {
	first := 0
	for i, log := range d.Logs {
		if log.Zxid <= last {
			first = i
		}
	}
	for _, log := range d.Logs[first:] {
		err := readLog(log.Path, func(r *zkfiles.Record, _ int64) error {
			if r.Zxid > last {
				return f(r)
			}
			found = found || r.Zxid == last
			return nil
		})
		switch {
		case errors.Is(err, zkfiles.ErrTorn):
			torn = append(torn, err.Error())
		case err != nil:
			return found, torn, err
		}
	}
	// The first zxid of an epoch is that of no transaction: a server of this epoch has what came before.
	return found || last.Counter() == 0 && d.epoch >= last.Epoch(), torn, nil
}
