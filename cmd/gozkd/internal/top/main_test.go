package top

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/cli"
	"github.com/gozkd/gozkd/internal/probe"
)

// watching returns a watcher of a world with a gozkd leader and two members that are down.
func watching(w *world, interval time.Duration) *watcher {
	w.recorded("127.0.0.1:2281", "gozkd-leader", "srvr", "mntr", "cons", "conf")
	return &watcher{roster: newRoster([]string{"127.0.0.1:2281"}, nil), interval: interval, ask: w.ask,
		discover: func(context.Context, string) (probe.Settings, error) { return probe.Settings{}, errors.New("no") }}
}

func TestOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		if err := stream(t.Context(), watching(newWorld(t), time.Second), options{once: true}, &out); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{
			"gozkd top  1 of 3 up  leader 1  epoch 1  zxid 0x100001705",
			"  1 127.0.0.1:2281               leader       0x100001705",
			"  2 127.0.0.1:2282               down       connection refused (for ",
			"127.0.0.1:45420",
			"not in the whitelist: add hotp to 4lw.commands.whitelist in zoo.cfg",
		} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("no %q in\n%s", want, out.String())
			}
		}
	})
}

func TestOnce_JSON(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		if err := stream(t.Context(), watching(newWorld(t), time.Second), options{once: true, json: true}, &out); err != nil {
			t.Fatal(err)
		}
		var got struct {
			Leader  string
			Zxid    string
			Members []struct {
				ID                  int
				Server, Role, Error string
				Requests            *float64 `json:"requests_per_s"`
				LatencyMs           *float64 `json:"latency_ms"`
				Znodes, Connections *int
			}
			Clients []struct{ Client, Session string }
			Missing []string
		}
		if err := json.Unmarshal(out.Bytes(), &got); err != nil {
			t.Fatalf("%v\n%s", err, out.String())
		}
		if got.Leader != "127.0.0.1:2281" || got.Zxid != "0x100001705" || len(got.Members) != 3 || len(got.Clients) != 2 || len(got.Missing) != 1 {
			t.Fatalf("%s", out.String())
		}
		if m := got.Members[0]; m.ID != 1 || m.Role != "leader" || m.Requests == nil || *m.Requests != 0 || m.LatencyMs != nil || m.Znodes == nil || *m.Znodes != 2137 {
			t.Errorf("%+v", m)
		}
		if m := got.Members[1]; m.Role != "down" || m.Error != "connection refused" || m.Requests != nil || m.Znodes != nil {
			t.Errorf("%+v", m)
		}
	})
}

// Without -once, stream writes a line of JSON per round until the program is interrupted.
func TestStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var out bytes.Buffer
		if err := stream(ctx, watching(newWorld(t), time.Second), options{json: true}, &out); err != nil {
			t.Fatal(err)
		}
		// A round takes the leader's five words and a second.
		if n := bytes.Count(out.Bytes(), []byte("\n")); n < 8 || n > 30 {
			t.Errorf("%d lines in a minute", n)
		}
		for line := range bytes.Lines(out.Bytes()) {
			if !json.Valid(line) {
				t.Errorf("%s", line)
			}
		}
	})
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestOnce_Fails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nobody := &watcher{roster: newRoster([]string{"s:1"}, nil), interval: time.Second, ask: newWorld(t).ask}
		var out bytes.Buffer
		if err := stream(t.Context(), nobody, options{once: true}, &out); err == nil || err.Error() != "no member serves" || !strings.Contains(out.String(), "connection refused") {
			t.Errorf("%v\n%s", err, out.String())
		}
		if err := stream(t.Context(), watching(newWorld(t), time.Second), options{json: true}, full{}); err == nil || !strings.Contains(err.Error(), "disk full") {
			t.Error(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := stream(ctx, watching(newWorld(t), time.Hour), options{once: true}, &out); err == nil {
			t.Error("it was ended before it had an answer, and all is well")
		}
	})
}

func TestUsage(t *testing.T) {
	call := func(args string) (status int, out, errs string) {
		var o, e strings.Builder
		w := bufio.NewWriter(&o)
		status = Main(t.Context(), strings.Fields(args), cli.Env{Out: w, Err: &e, Getenv: func(string) string { return "" }})
		if err := w.Flush(); err != nil {
			t.Error(err)
		}
		return status, o.String(), e.String()
	}
	for _, args := range []string{"", "-nonsense", "localhost:2181", "-once -interval 1ms", "-once -timeout 0s", "-once -output xml", "-once -server h:port"} {
		if status, out, errs := call(args); status != cli.Usage || out != "" || !strings.HasPrefix(errs, "gozkd top: ") || !strings.Contains(errs, "\nusage: gozkd top ") {
			t.Errorf("%q: status %d\n%s%s", args, status, out, errs)
		}
	}
	if status, out, _ := call("-h"); status != cli.OK || !strings.HasPrefix(out, "usage: gozkd top") {
		t.Errorf("-h: status %d\n%s", status, out)
	}
	if status, out, errs := call("-once -interval 100ms -server 127.0.0.1:1"); status != cli.Failed || !strings.Contains(out, "connection refused") || errs != "gozkd top: no member serves\n" {
		t.Errorf("nobody there: status %d\n%s%s", status, out, errs)
	}
}
