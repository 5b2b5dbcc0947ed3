//go:build unix

package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/gozkd/gozkd/internal/testkit/exhaustive"
	"github.com/gozkd/gozkd/internal/testkit/program"
	"github.com/gozkd/gozkd/server/facts"
)

// holder is a process that holds a session with an ephemeral znode.
type holder struct {
	*exec.Cmd
	in io.WriteCloser
}

// hold starts a holder of the znode at a path.
func hold(t *testing.T, address, path string) holder {
	t.Helper()
	h := holder{Cmd: program.Command("cli", "-server", address, "-timeout", "4000")}
	in, err := h.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	h.in = in
	out, err := h.StderrPipe() // as zkCli.sh does
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = h.Process.Kill() // it may have ended
		_ = h.Wait()         // killed, as it should be
	})
	if _, err := io.WriteString(in, "create -e "+path+"\n"); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() && lines.Text() != "Created "+path {
	}
	if lines.Err() != nil || lines.Text() != "Created "+path {
		t.Fatalf("no %s: %v", path, lines.Err())
	}
	return h
}

func (h holder) signal(s syscall.Signal) func() error {
	return func() error { return h.Process.Signal(s) }
}

// cutProxy returns the address of a proxy to a server, and what cuts the network between: from then
// on nothing is passed, and nothing is closed.
func cutProxy(t *testing.T, server string) (address string, cut func() error) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	isCut := make(chan struct{})
	pass := func(to, from net.Conn) { // ends with the test's connections
		buf := make([]byte, 32<<10)
		for {
			n, err := from.Read(buf)
			select {
			case <-isCut:
				return
			default:
			}
			if err == nil {
				_, err = to.Write(buf[:n])
			}
			if err != nil {
				return
			}
		}
	}
	go func() { // ends with the listener
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			upstream, err := net.Dial("tcp", server)
			if err != nil {
				_ = client.Close()
				return
			}
			t.Cleanup(func() { _ = errors.Join(client.Close(), upstream.Close()) })
			go pass(upstream, client)
			go pass(client, upstream)
		}
	}()
	return l.Addr().String(), func() error { close(isCut); return nil }
}

// With real processes, each story names the staged cause, or says that it cannot tell.
func TestWhy_Processes(t *testing.T) {
	exhaustive.Only(t)
	tr, secret := newTrio(t), filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("digest super:test\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tr.start(0, 1, 2)
	admin := func(i int) string { return "http://127.0.0.1:" + tr.ports[i].admin }
	// stories asks these members, and returns the story of a znode that is gone.
	story := func(path string, members ...int) (s facts.EndedSession, err error) {
		var urls []string
		for _, i := range members {
			urls = append(urls, admin(i))
		}
		_, out, errs := why(t, "--url", strings.Join(urls, ","), "--output", "json", path)
		var all []facts.EndedSession
		if err := json.Unmarshal([]byte(out), &all); err != nil || len(all) == 0 || len(all[0].Tellers) < len(members) {
			return s, fmt.Errorf("%s: %s%s", path, out, errs)
		}
		return all[0], nil
	}
	check := func(path string, want facts.Cause, says string, members ...int) {
		t.Helper()
		var s facts.EndedSession
		await(t, "the end of "+path, func() (err error) { s, err = story(path, members...); return err })
		t.Log(s.Story)
		for _, i := range members { // the explorer of a member tells what the command tells of that member
			var seen, told struct {
				Ended []facts.EndedSession
				Told  []facts.EndedSession `json:"ended_sessions"`
			}
			for url, into := range map[string]any{"/ui/api/ended": &seen, "/commands/ended_sessions": &told} {
				status, body := request(t, http.MethodGet, admin(i)+url+"?path="+path)
				if err := json.Unmarshal([]byte(body), into); err != nil || status != http.StatusOK {
					t.Fatal(status, body, err)
				}
			}
			if len(seen.Ended) != 1 || len(told.Told) != 1 || seen.Ended[0].Story == "" || seen.Ended[0].Story != told.Told[0].Story {
				t.Errorf("%s: the explorer of server %d says %+v, the command %+v", path, i+1, seen.Ended, told.Told)
			}
			t.Logf("server %d: %s", i+1, seen.Ended[0].Story)
		}
		if s.Cause != want || !strings.Contains(s.Story, says) {
			t.Errorf("%s: cause %q, want %q with %q: %+v", path, s.Cause, want, says, s)
		}
	}
	leader := func() (at int) {
		t.Helper()
		await(t, "a leader", func() error {
			at = slices.IndexFunc([]int{0, 1, 2}, func(i int) bool {
				if tr.procs[i] == nil {
					return false
				}
				_, out, _ := adminCommand(t, "--url", admin(i), "leader")
				return strings.Contains(out, `"is_leader": true`)
			})
			if at < 0 {
				return errors.New("there is none")
			}
			return nil
		})
		return at
	}
	first := leader()
	follower, other := (first+1)%3, (first+2)%3
	address := tr.addresses(follower)
	proxied, cut := cutProxy(t, address)
	expire := func() error {
		s := must(t, "cli", "-server", address, "stat", "/expired")
		_, owner, _ := strings.Cut(s, "ephemeralOwner = ")
		owner, _, _ = strings.Cut(owner, "\n")
		must(t, "admin", "--url", admin(first), "--auth-file", secret, "expire_session", "id="+owner)
		return nil
	}
	killed, stopped, closed := hold(t, address, "/killed"), hold(t, address, "/stopped"), hold(t, address, "/closed")
	hold(t, proxied, "/cut")
	hold(t, address, "/expired")
	for what, stage := range map[string]func() error{
		"killed": killed.signal(syscall.SIGKILL), "stopped": stopped.signal(syscall.SIGSTOP), "closed": closed.in.Close,
		"cut": cut, "expired": expire,
	} {
		if err := stage(); err != nil {
			t.Fatal(what, err)
		}
	}
	check("/killed", facts.ClientLeft, "as if its process had ended", 0, 1, 2)
	silent, says := facts.ClientSilent, "cannot tell which"
	if runtime.GOOS == "linux" { // the proxy answers probes itself
		silent, says = facts.ProcessSilent, "the client's machine, or a proxy before it, answered probes"
	}
	check("/stopped", silent, says, 0, 1, 2)
	check("/cut", silent, says, 0, 1, 2)
	check("/closed", facts.ClientClosed, "its client closed it", 0, 1, 2)
	check("/expired", facts.Administrator, "an administrator", 0, 1, 2)

	hold(t, address, "/paused")
	if err := tr.procs[follower].Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	await(t, "the leader ends the session", func() error { _, err := story("/paused", first, other); return err })
	if err := tr.procs[follower].Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	check("/paused", facts.ServerPaused, "could not hear its clients meanwhile", 0, 1, 2)

	elected := hold(t, address, "/elected")
	tr.kill(leader())
	if err := elected.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	leader()
	check("/elected", facts.ClientLeft, "no leader", follower, other)
}
