//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/test/compat/server"
)

const (
	latencyTurns   = 60  // turns of all probes
	latencySamples = 100 // of a probe in a turn
	latencySkipped = 5   // first turns, not counted: caches, branch predictors and the JVM's compiler warm up

	syncFileBytes   = 64 << 20
	syncRecordBytes = 256 // about what a set of 100 bytes needs in a log
)

// probe is one thing to time, again and again.
type probe struct {
	name   string
	server string // whose it is; empty: the machine's
	once   func() error
	seen   histogram
}

// benchLatency times in turns: the disk alone, the loopback alone, and a set by one client of each server. So all of
// them meet the same machine.
func benchLatency(ctx context.Context, s *settings) (err error) {
	var closers []func() error
	defer func() {
		for _, c := range closers {
			err = errors.Join(err, c())
		}
	}()
	disk, closeDisk, err := diskProbe()
	if err != nil {
		return err
	}
	closers = append(closers, closeDisk)
	loopback, closeEcho, err := loopbackProbe()
	if err != nil {
		return err
	}
	closers = append(closers, closeEcho)
	probes := []*probe{disk, loopback}
	for _, k := range s.servers {
		p, err := k.start(ctx, server.Options{Keys: keys()})
		if err != nil {
			return err
		}
		closers = append(closers, p.Stop)
		if err := prepare(p.Addr()); err != nil {
			return err
		}
		c, err := dial(p.Addr(), 0, 1)
		if err != nil {
			return err
		}
		probes = append(probes, &probe{name: "ping, " + p.Name(), server: p.Name(), once: c.ping}, &probe{name: "set 100 B, " + p.Name(), server: p.Name(), once: func() error {
			return c.call(proto.OpSetData, setRequest(c).Append, replyLen(proto.StatBytes))
		}})
	}
	for turn := range latencyTurns {
		for _, p := range probes {
			for range latencySamples {
				start := time.Now()
				if err := p.once(); err != nil {
					return fmt.Errorf("%s: %w", p.name, err)
				}
				if d := time.Since(start); turn >= latencySkipped {
					p.seen.note(d)
				}
			}
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	floor := disk.seen.quantile(0.5) + loopback.seen.quantile(0.5)
	var table [][]string
	var list []reading
	for _, p := range probes {
		h := &p.seen
		for _, q := range []struct {
			what string
			d    time.Duration
		}{{"p50 µs", h.quantile(0.5)}, {"p99 µs", h.quantile(0.99)}, {"p99.9 µs", h.quantile(0.999)}} {
			list = append(list, reading{p.name, q.what, p.server, once(float64(q.d) / 1e3)})
		}
		table = append(table, []string{p.name, micros(h.quantile(0.5)), micros(h.quantile(0.99)), micros(h.quantile(0.999)), micros(h.max()),
			fmt.Sprintf("%.2f", float64(h.quantile(0.5))/float64(floor))})
	}
	s.out.table("One client, one request at a time (µs)", []string{"what", "p50", "p99", "p99.9", "max", "p50 / (disk + loopback)"}, table)
	return s.out.readings("latency", list)
}

// diskProbe writes a record behind the last one into a file that was written with zeros before, and syncs it.
func diskProbe() (*probe, func() error, error) {
	f, err := zeroedFile()
	if err != nil {
		return nil, nil, err
	}
	return &probe{name: fmt.Sprintf("disk: write %d B, fdatasync", syncRecordBytes), once: syncsOf(f, syncFileBytes)},
		func() error { return errors.Join(f.Close(), os.Remove(f.Name())) }, nil
}

// syncsOf returns what writes a record behind the last one and syncs it; behind the first size bytes it begins again.
func syncsOf(f *os.File, size int64) func() error {
	record, at := make([]byte, syncRecordBytes), int64(0)
	for i := range record {
		record[i] = byte(i)
	}
	return func() error {
		_, err := f.WriteAt(record, at)
		at = (at + syncRecordBytes) % size
		return errors.Join(err, unix.Fdatasync(int(f.Fd())))
	}
}

// zeroedFile returns a new temporary file of syncFileBytes zeros, all on disk. The caller closes and removes it.
func zeroedFile() (*os.File, error) {
	f, err := os.CreateTemp("", "gozkd-bench-sync-")
	if err != nil {
		return nil, err
	}
	_, err = io.CopyN(f, zeros{}, syncFileBytes)
	if err = errors.Join(err, f.Sync()); err != nil {
		return nil, errors.Join(err, f.Close(), os.Remove(f.Name()))
	}
	return f, nil
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

// loopbackProbe sends a set's length to another process, which sends it back.
func loopbackProbe() (*probe, func() error, error) {
	echo, err := startSelf("echo")
	if err != nil {
		return nil, nil, err
	}
	fd, err := connect(echo.addr, ioTimeout)
	if err != nil {
		return nil, nil, errors.Join(err, echo.stop())
	}
	c := &client{fd: fd}
	c.request(proto.OpSetData, setRequest(&client{random: 1}).Append)
	message := c.out
	c.in = make([]byte, inputBytes)
	return &probe{name: fmt.Sprintf("loopback: %d B and back", len(message)), once: func() error {
		c.out = append(c.out[:0], message...)
		if err := c.writeAll(); err != nil {
			return err
		}
		_, err := c.readFrame()
		return err
	}}, func() error { return errors.Join(unix.Close(fd), echo.stop()) }, nil
}

// self is this program once more, as a server that prints its address and ends when its standard input does.
type self struct {
	addr string
	pid  int
	stop func() error
}

func startSelf(command string) (*self, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(program, command)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	stop := func() error { return errors.Join(in.Close(), cmd.Wait()) }
	line := make([]byte, 64)
	n, err := out.Read(line)
	if err != nil {
		return nil, errors.Join(err, stop())
	}
	return &self{addr: strings.TrimSpace(string(line[:n])), pid: cmd.Process.Pid, stop: stop}, nil
}
