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
	"strings"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/compat/server"
)

const (
	// termLimit is how long a server may take to end before it is killed.
	termLimit = 20 * time.Second
	// prepareLimit bounds the preparation of an attack.
	prepareLimit = 30 * time.Second
	// restartLimit is how long servers may take to serve again.
	restartLimit = 30 * time.Second
)

// measure runs an attack against a kind of server.
func measure(ctx context.Context, s *settings, k server.Kind, a *attack) *row {
	v := startServers(ctx, k, a)
	defer must.Finally(v.stop)
	r := &row{attack: a, server: k.Name}
	kept := plant(ctx, v.target.Addrs)
	if a.ensemble { // members that have a past keep more in mind, and it can be turned against them
		v.terminate(termLimit)
		v.restart(ctx)
	}
	probe := startChild(append([]string{probeCommand}, v.target.Addrs...)...)
	defer probe.kill()
	attacker := startChild(attackCommand, a.name)
	defer attacker.kill()
	r.underAttack(ctx, s, v, probe, attacker)
	r.died = v.died()
	r.sigterm = v.terminate(termLimit)
	_, r.races = v.logBytes()
	var h harm
	if err := attacker.result(&h, termLimit); err != nil {
		h.Failed = fmt.Sprintf("the attacker did not end well: %v", err)
	}
	r.notes, r.breaches, r.failed = append(r.notes, h.Notes...), h.Breaches, h.Failed
	if err := must.Try(func() { v.restart(ctx) }); err != nil {
		r.lasting = []string{"does not start again: " + firstLine(err)}
	} else {
		r.lasting = kept.missing(ctx, v.target.Addrs, r.others.Versions)
	}
	return r
}

// underAttack lets the attack run and collects what the probe and the memory show.
func (r *row) underAttack(ctx context.Context, s *settings, v *servers, probe, attacker *child) {
	must.Doing("probe", func() { must.Do(probe.await("ready", prepareLimit)) })
	must.Sleep(ctx, 500*time.Millisecond)
	zxid := lastZxid(ctx, v.target.Addrs[0])
	logged, _ := v.logBytes()
	began := time.Now()
	must.Get(io.WriteString(probe.in, begin+"\n"))
	must.Do(json.NewEncoder(attacker.in).Encode(&v.target))
	if err := attacker.await("ready", prepareLimit); err != nil {
		r.notes = append(r.notes, "preparation not finished")
	}
	must.Sleep(ctx, s.duration)
	took := time.Since(began).Seconds()
	after, _ := v.logBytes()
	r.logRate = float64(after-logged) / took
	err := probe.result(&r.others, 2*probePatience)
	if err != nil {
		r.notes = append(r.notes, fmt.Sprintf("the probe did not end: %v", err))
	}
	for _, m := range v.ensemble.Members {
		r.peak = max(r.peak, m.Memory("VmHWM")) // the peak, which the kernel keeps
	}
	if now := lastZxid(ctx, v.target.Addrs[0]); zxid > 0 && now > zxid {
		// The probe's sets are half of its samples, and those of the epoch are in the lower half.
		r.writeRate = max(0, (float64(now-zxid)-float64(r.others.Samples)/2)/time.Since(began).Seconds())
	}
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// child is another process of this program.
type child struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	out   *os.File
	lines *bufio.Reader // of out
}

// startChild starts this program with arguments. The attacker gets less of the processor than the
// others, as it would not be on the server's machine.
func startChild(args ...string) *child {
	command := append([]string{must.Get(os.Executable())}, args...)
	if nice, err := exec.LookPath("nice"); err == nil && args[0] == attackCommand {
		command = append([]string{nice, "-n", "5"}, command...)
	}
	cmd := exec.Command(command[0], command[1:]...)
	in := must.Get(cmd.StdinPipe())
	out, theirs := must.Get2(os.Pipe())
	cmd.Stdout, cmd.Stderr = theirs, os.Stderr
	must.Do(errors.Join(cmd.Start(), theirs.Close()))
	return &child{cmd, in, out, bufio.NewReader(out)}
}

// next returns the next line of the output.
func (c *child) next(limit time.Duration) (string, error) {
	if err := c.out.SetReadDeadline(time.Now().Add(limit)); err != nil {
		return "", err
	}
	line, err := c.lines.ReadString('\n')
	return strings.TrimSuffix(line, "\n"), err
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
	_ = c.cmd.Wait()         // how it ended does not matter
	_ = c.out.Close()        // everything that counts was read
}
