package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// termLimit is how long a server may take to end before it is killed.
	termLimit = 20 * time.Second
	// prepareLimit bounds the preparation of an attack.
	prepareLimit = 30 * time.Second
	// restartLimit is how long servers may take to serve again.
	restartLimit = 30 * time.Second
)

// measure runs an attack against a product.
func measure(ctx context.Context, s *settings, p *product, a *attack, dir string) (_ *row, err error) {
	dir = filepath.Join(dir, "data", p.name, a.name) // dir also holds the program that was built
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	v, err := p.start(ctx, s, a, dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, v.stop(), os.RemoveAll(dir)) }()
	r := &row{attack: a, server: p.name, own: p.addr == ""}
	kept, err := plant(ctx, v.target.Addrs)
	if err != nil {
		return nil, err
	}
	if a.ensemble { // members that have a past keep more in mind, and it can be turned against them
		v.terminate(termLimit)
		if err := v.restart(ctx); err != nil {
			return nil, err
		}
	}
	probe, err := startChild(append([]string{probeCommand}, v.target.Addrs...)...)
	if err != nil {
		return nil, err
	}
	defer probe.kill()
	attacker, err := startChild(attackCommand, a.name)
	if err != nil {
		return nil, err
	}
	defer attacker.kill()
	if err := r.underAttack(ctx, s, v, probe, attacker); err != nil {
		return nil, err
	}
	if r.own {
		r.died = append(r.died, v.died()...)
		r.sigterm = v.terminate(termLimit)
		_, r.races = v.logBytes()
	}
	var h harm
	if err := attacker.result(&h, termLimit); err != nil {
		h.Failed = fmt.Sprintf("the attacker did not end well: %v", err)
	}
	r.notes, r.breaches, r.failed = append(r.notes, h.Notes...), h.Breaches, h.Failed
	if r.own {
		if err := v.restart(ctx); err != nil {
			r.lasting = append(r.lasting, "does not start again: "+firstLine(err))
			return r, nil
		}
	}
	r.lasting = append(r.lasting, kept.missing(ctx, v.target.Addrs, r.others.Versions)...)
	return r, nil
}

// underAttack lets the attack run and collects what the probe and the memory show.
func (r *row) underAttack(ctx context.Context, s *settings, v *servers, probe, attacker *child) error {
	if err := probe.await("ready", prepareLimit); err != nil {
		return fmt.Errorf("probe: %w", err)
	}
	if err := sleep(ctx, 500*time.Millisecond); err != nil {
		return err
	}
	peak := watchMemory(v)
	zxid, logged := lastZxid(ctx, v.target.Addrs[0]), 0
	logged, _ = v.logBytes()
	began := time.Now()
	if err := probe.say(begin); err != nil {
		return err
	}
	if err := json.NewEncoder(attacker.in).Encode(&v.target); err != nil {
		return err
	}
	if err := attacker.await("ready", prepareLimit); err != nil {
		r.notes = append(r.notes, "preparation not finished")
	}
	if err := sleep(ctx, s.duration); err != nil {
		return err
	}
	took := time.Since(began).Seconds()
	after, _ := v.logBytes()
	r.logRate = float64(after-logged) / took
	err := probe.result(&r.others, 2*probePatience)
	r.peak = peak()
	if err != nil {
		r.notes = append(r.notes, fmt.Sprintf("the probe did not end: %v", err))
	}
	if now := lastZxid(ctx, v.target.Addrs[0]); zxid > 0 && now > zxid {
		// The probe's sets are half of its samples, and those of the epoch are in the lower half.
		r.writeRate = max(0, (float64(now-zxid)-float64(r.others.Samples)/2)/time.Since(began).Seconds())
	}
	return nil
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// watchMemory samples the largest resident memory of the processes until the returned function is
// called, which returns it in bytes. It is the kernel's own maximum, which no sample misses.
func watchMemory(v *servers) (stop func() int64) {
	ctx, cancel := context.WithCancel(context.Background())
	var peak int64
	var running sync.WaitGroup
	sample := func() {
		for _, p := range v.processes() {
			if p.Running() {
				peak = max(peak, peakMemory(p.Pid()))
			}
		}
	}
	// Ends with ctx; awaited by the returned function.
	running.Go(func() {
		for sleep(ctx, 50*time.Millisecond) == nil {
			sample()
		}
	})
	return func() int64 {
		cancel()
		running.Wait()
		sample()
		return peak
	}
}

// peakMemory returns the peak of a process's resident memory; 0 where the system does not tell it.
func peakMemory(pid int) int64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		if value, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
			if err == nil {
				return kib << 10
			}
		}
	}
	return 0
}

// child is another process of this program.
type child struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out chan string // lines of the output; closed at its end
}

// startChild starts this program with arguments. The attacker gets less of the processor than the
// others, as it would not be on the server's machine.
func startChild(args ...string) (*child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, args...)
	if nice, err := exec.LookPath("nice"); err == nil && args[0] == attackCommand {
		cmd = exec.Command(nice, append([]string{"-n", "5", self}, args...)...)
	}
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
	c := &child{cmd: cmd, in: in, out: make(chan string, 10)}
	// Ends with the output of the process, which kill ends.
	go func() {
		defer close(c.out)
		lines := bufio.NewScanner(out)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			c.out <- lines.Text()
		}
	}()
	return c, nil
}

// say sends a line.
func (c *child) say(line string) error {
	_, err := io.WriteString(c.in, line+"\n")
	return err
}

// next returns the next line of the output.
func (c *child) next(limit time.Duration) (string, error) {
	select {
	case line, ok := <-c.out:
		if !ok {
			return "", io.ErrUnexpectedEOF
		}
		return line, nil
	case <-time.After(limit):
		return "", fmt.Errorf("no answer within %v", limit)
	}
}

// await waits for a line.
func (c *child) await(want string, limit time.Duration) error {
	line, err := c.next(limit)
	if err == nil && line != want {
		err = fmt.Errorf("unexpected output %q", line)
	}
	return err
}

// result ends the process's input and decodes its last line.
func (c *child) result(v any, limit time.Duration) error {
	if err := c.in.Close(); err != nil {
		return err
	}
	for {
		line, err := c.next(limit)
		if err != nil {
			return err
		}
		if strings.HasPrefix(line, "{") {
			return json.Unmarshal([]byte(line), v)
		}
	}
}

// kill ends the process and waits for it.
func (c *child) kill() {
	_ = c.in.Close()         // perhaps closed already
	_ = c.cmd.Process.Kill() // perhaps ended already
	for range c.out {        //nolint:revive // until the output ends
	}
	_ = c.cmd.Wait() // how it ended does not matter
}
