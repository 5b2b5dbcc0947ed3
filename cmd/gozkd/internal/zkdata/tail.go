package zkdata

import (
	"errors"
	"path/filepath"
	"slices"

	"github.com/gozkd/gozkd/internal/zkfiles"
	"github.com/gozkd/gozkd/proto"
)

// Absolute returns Find's argument with absolute paths.
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
	// No transaction has an epoch's first zxid: a server of this epoch has all before it.
	found = last.Counter() == 0 && d.epoch >= last.Epoch()
	// A server that received the state with last from its leader has no log of it.
	found = found || slices.ContainsFunc(d.Snapshots, func(s File) bool { return s.Zxid == last })
	logs := d.logsFrom(last)
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
