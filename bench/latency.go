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
	name string
	once func() error
	seen histogram
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
		probes = append(probes, &probe{name: "ping, " + p.Name(), once: c.ping}, &probe{name: "set 100 B, " + p.Name(), once: func() error {
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
	for _, p := range probes {
		h := &p.seen
		table = append(table, []string{p.name, micros(h.quantile(0.5)), micros(h.quantile(0.99)), micros(h.quantile(0.999)), micros(h.max),
			fmt.Sprintf("%.2f", float64(h.quantile(0.5))/float64(floor))})
	}
	s.out.table("One client, one request at a time (µs)", []string{"what", "p50", "p99", "p99.9", "max", "p50 / (disk + loopback)"}, table)
	return nil
}

// diskProbe writes a record behind the last one into a file that was written with zeros before, and syncs it.
func diskProbe() (*probe, func() error, error) {
	f, err := os.CreateTemp("", "gozkd-bench-sync-")
	if err != nil {
		return nil, nil, err
	}
	done := func() error { return errors.Join(f.Close(), os.Remove(f.Name())) }
	_, err = io.CopyN(f, zeros{}, syncFileBytes)
	if err = errors.Join(err, f.Sync()); err != nil {
		return nil, nil, errors.Join(err, done())
	}
	record, at := make([]byte, syncRecordBytes), int64(0)
	for i := range record {
		record[i] = byte(i)
	}
	return &probe{name: fmt.Sprintf("disk: write %d B, fdatasync", syncRecordBytes), once: func() error {
		_, err := f.WriteAt(record, at)
		at = (at + syncRecordBytes) % syncFileBytes
		return errors.Join(err, unix.Fdatasync(int(f.Fd())))
	}}, done, nil
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

// loopbackProbe sends a set's length to another process, which sends it back.
func loopbackProbe() (*probe, func() error, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	cmd := exec.Command(self, "echo")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe() // it ends when this closes
	if err != nil {
		return nil, nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	done := func() error { return errors.Join(in.Close(), cmd.Wait()) }
	line := make([]byte, 64)
	n, err := out.Read(line)
	if err != nil {
		return nil, nil, errors.Join(err, done())
	}
	fd, err := connect(strings.TrimSpace(string(line[:n])), ioTimeout)
	if err != nil {
		return nil, nil, errors.Join(err, done())
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
	}}, func() error { return errors.Join(unix.Close(fd), done()) }, nil
}
