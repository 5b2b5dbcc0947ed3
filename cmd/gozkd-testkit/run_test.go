package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/internal/cluster"
)

// shell skips the test on systems without a shell.
func shell(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip(err)
	}
}

func TestRun_ExitStatus(t *testing.T) {
	shell(t)
	for _, c := range []struct {
		args   string
		script string
		status int
		out    string // a part
		errOut string // a part
	}{
		{"", "exit 0", 0, "", ""},
		{"", "cat; exit 7", 7, "what it reads", ""},
		{"", "kill -TERM $$", 128 + 15, "", ""},
		{"--ensemble 3", "echo $ZOOKEEPER_CONNECT | tr , '\n' | wc -l | tr -d ' '", 0, "3\n", ""},
		{"--seed 4", "exit 3", 3, "", "exit status 3 under the faults of seed 4; again: gozkd-testkit run --seed 4 -- sh -c 'exit 3'\n"},
		{"--seed 4", "exit 0", 0, "", ""},
		{"--seed 7 --runs 3", "echo run", 0, "run\nrun\nrun\n", ""},
		{"--seed 7 --runs 3", "exit 1", 1, "", "seed 7;"},
		{"--runs 2", "exit 1", 1, "", "under the faults of seed "},
		{"--fault {}", "echo it runs", 125, "", `--fault {}: the kind is ""`},
		{"--runs 0", "exit 0", 2, "", "--runs is 0"},
		{"--stdin", "exit 0", 2, "", "flag provided but not defined: -stdin"},
	} {
		var out, errOut strings.Builder
		args := slices.Concat([]string{"run"}, strings.Fields(c.args), []string{"--", "sh", "-c", c.script})
		status := run(args, strings.NewReader("what it reads"), &out, &errOut)
		if status != c.status || !strings.Contains(out.String(), c.out) || !strings.Contains(errOut.String(), c.errOut) {
			t.Errorf("%s -- %s: %d %q %q, want %d %q %q", c.args, c.script, status, &out, &errOut, c.status, c.out, c.errOut)
		}
		if c.out == "" && out.Len() > 0 || c.errOut == "" && errOut.Len() > 0 {
			t.Errorf("%s -- %s: printed %q, %q", c.args, c.script, &out, &errOut)
		}
	}
	var out, errOut strings.Builder
	if status := run([]string{"run", "--", "no-such-command"}, nil, &out, &errOut); status != 127 || !strings.Contains(errOut.String(), "no-such-command") {
		t.Errorf("%d %q", status, &errOut)
	}
	if status := run([]string{"run", "--seed", "1"}, nil, &out, &errOut); status != 2 {
		t.Errorf("without a command: %d", status)
	}
}

// TestRun_Again: a shell reads the line that runs a command again as the words that it had before,
// with all flags.
func TestRun_Again(t *testing.T) {
	shell(t)
	fault := `{"kind":"fail","op":"get","code":-101}`
	kept := []string{"--tick", "100ms", "--fault", fault}
	flags := slices.Concat([]string{"--runs", "3"}, kept, []string{"--seed=5"})
	command := []string{"sh", "-c", "exit 3 # it's $HOME *", "", `a"b\c`}
	var out, errOut strings.Builder
	args := slices.Concat([]string{"run"}, flags, []string{"--"}, command)
	if status := run(args, nil, &out, &errOut); status != 3 {
		t.Fatalf("%d %q", status, &errOut)
	}
	_, line, _ := strings.Cut(errOut.String(), "again: ")
	words, err := exec.CommandContext(t.Context(), "sh", "-c", `printf '<%s>' `+line).Output()
	want := slices.Concat([]string{"gozkd-testkit", "run"}, kept, []string{"--seed", "5", "--"}, command)
	if wanted := "<" + strings.Join(want, "><") + ">"; err != nil || string(words) != wanted {
		t.Errorf("%q gives %s %v, want %s", line, words, err, wanted)
	}
}

// TestRun_NextSeed: the seed that is named is that of the run that failed.
func TestRun_NextSeed(t *testing.T) {
	shell(t)
	counter := t.TempDir() + "/counter"
	script := fmt.Sprintf("echo x >> %[1]s; test $(wc -l < %[1]s) -lt 3", counter)
	var out, errOut strings.Builder
	status := run([]string{"run", "--seed", "20", "--runs", "9", "--", "sh", "-c", script}, nil, &out, &errOut)
	if status != 1 || !strings.Contains(errOut.String(), "seed 22;") {
		t.Errorf("%d %q, want seed 22", status, &errOut)
	}
}

// TestRun_Faults: the command finds the servers with the faults, and their HTTP requests.
func TestRun_Faults(t *testing.T) {
	shell(t)
	read, write := io.Pipe()
	hold, release := io.Pipe()
	var errOut bytes.Buffer
	ended := make(chan int, 1)
	go func() { // ends with the command, which ends with its input
		args := []string{"run", "--fault", `{"kind":"fail","op":"create","code":"NoAuth"}`, "--fault", `{"kind":"fail","op":"get","code":-101}`}
		ended <- run(append(args, "--", "sh", "-c", "echo $ZOOKEEPER_CONNECT $GOZKD_TESTKIT_FAULTS; cat"), hold, write, &errOut)
		_ = write.Close() // never fails
	}()
	line, err := bufio.NewReader(read).ReadString('\n')
	if err != nil {
		t.Fatal(err, <-ended, &errOut)
	}
	address, faults, _ := strings.Cut(strings.TrimSpace(line), " ")
	c := connect(t, address)
	if _, err := c.Create("/a", nil, 0, zk.WorldACL(zk.PermAll)); !errors.Is(err, zk.ErrNoAuth) {
		t.Error(err)
	}
	if _, _, err := c.Get("/"); !errors.Is(err, zk.ErrNoNode) {
		t.Error(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), "GET", faults+"/faults", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	var list []struct{ Count int }
	if err := json.NewDecoder(response.Body).Decode(&list); err != nil || len(list) != 2 || list[0].Count != 1 {
		t.Errorf("%+v %v", list, err)
	}
	_ = response.Body.Close()
	http.DefaultClient.CloseIdleConnections()
	c.Close()
	_ = release.Close() // never fails
	if status := <-ended; status != 0 || errOut.Len() > 0 {
		t.Errorf("%d %s", status, &errOut)
	}
}

// TestDraw_SameSeed: equal seeds draw equal disasters, which end; other seeds draw others.
func TestDraw_SameSeed(t *testing.T) {
	drawn := func(seed uint64) (lines string) {
		synctest.Test(t, func(t *testing.T) {
			c, err := cluster.Start(t.Context(), cluster.Config{Members: 3, InMemory: true})
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := c.Close(); err != nil {
					t.Error(err)
				}
			}()
			var log bytes.Buffer
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			draw(ctx, seed, c, hclog.New(&hclog.LoggerOptions{Output: &log, DisableTime: true}))
			for _, m := range c.Members() {
				if m.State() == cluster.Paused { // by the disaster under way
					if err := m.Resume(); err != nil {
						t.Error(err)
					}
				}
			}
			for line := range strings.Lines(log.String()) {
				what, _, _ := strings.Cut(line, "error=") // which may depend on who leads
				lines += what + "\n"
			}
		})
		return lines
	}
	first, again, other := drawn(1), drawn(1), drawn(2)
	// How many a minute has depends on the elections, whose times are drawn anew.
	shorter := min(len(first), len(again))
	if shorter < len(first)/2 || first[:shorter] != again[:shorter] {
		t.Errorf("seed 1 drew\n%s\nand then\n%s", first, again)
	}
	if first == other || strings.Contains(first+other, "[WARN]") {
		t.Errorf("seed 1:\n%s\nseed 2:\n%s", first, other)
	}
	for _, what := range disasters {
		if !strings.Contains(first+other, `"`+what+`"`) && !strings.Contains(first+other, "="+what+" ") {
			t.Errorf("%s was never drawn in two minutes", what)
		}
	}
}
