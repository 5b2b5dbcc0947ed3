package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/cli"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/config"
	"github.com/gozkd/gozkd/internal/testkit/vfstest"
	"github.com/gozkd/gozkd/server"
)

// Every wrong input is refused with a reason, and nothing is left over.
func TestCommands_Refuse(t *testing.T) {
	dir := t.TempDir()
	data, good, ensemble := filepath.Join(dir, "data"), filepath.Join(dir, "good.db"), filepath.Join(dir, "diverged")
	s, stop := serve(t, server.Config{Dir: data})
	fill(t, s, 3)
	stop()
	mustRun(t, Backup, "--from", data, good)
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	whole, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	write("diverged/DIVERGED", "it differs.\n")
	write("nolog/checkpoint.db", string(whole))
	write("nostate/myid", "1\n")
	bad := write("bad.db", strings.Replace(string(whole), "/app/1", "/app/9", 1))
	cut := write("cut.db", string(whole[:len(whole)/2]))
	text := write("text.db", "this is no backup")
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/half":
			w.Header().Set("Content-Length", fmt.Sprint(len(whole)))
			_, _ = w.Write(whole[:len(whole)/2]) // the test looks at what arrives
		case "/bad":
			w.Header().Set("Content-Type", "application/octet-stream")
			_, _ = io.WriteString(w, "no bbolt file")
		case "/looking": // as a server does that looks for its leader
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"command": "snapshot", "error": "not serving", "reason": "no leader"}`)
		default:
			http.Error(w, "not authorized", http.StatusUnauthorized)
		}
	}))
	defer web.Close()
	to := filepath.Join(dir, "out", "new.db")
	if err := os.Mkdir(filepath.Dir(to), 0o700); err != nil {
		t.Fatal(err)
	}
	empty := filepath.Join(dir, "out", "empty")
	for _, c := range []struct {
		main   cli.Main
		args   []string
		status int
		stderr string
	}{
		{Backup, nil, 2, "--from is missing"},
		{Backup, []string{"--from", data}, 2, "name one FILE"},
		{Backup, []string{"--from", data, to, to}, 2, "name one FILE"},
		{Backup, []string{"--from", data, "-"}, 2, "- is no file"},
		{Backup, []string{"--form", data, to}, 2, "usage: gozkd backup"},
		{Backup, []string{"--from", data, good}, 1, "never replaces a file"},
		{Backup, []string{"--from", filepath.Join(dir, "none"), to}, 1, "no such file"},
		{Backup, []string{"--from", data, filepath.Join(dir, "none", "x.db")}, 1, "no such file"},
		{Backup, []string{"--from", bad, to}, 1, "corrupt checkpoint"},
		{Backup, []string{"--from", cut, to}, 1, "corrupt checkpoint"},
		{Backup, []string{"--from", text, to}, 1, "corrupt checkpoint"},
		{Backup, []string{"--from", good, "--log-dir", data, to}, 1, "a log belongs to a data directory"},
		{Backup, []string{"--from", data, "--log-dir", good, to}, 1, "--log-dir " + good + " has no directory wal: name the server's dataLogDir"},
		{Backup, []string{"--from", web.URL, to}, 1, "401"},
		{Backup, []string{"--from", web.URL + "/half", to}, 1, "the connection broke before the end of the backup"},
		{Backup, []string{"--from", web.URL + "/bad", to}, 1, "not good"},
		{Backup, []string{"--from", web.URL + "/looking", to}, 1, "/looking: not serving: no leader\n"},
		{Backup, []string{"--from", web.URL, "--log-dir", data, to}, 1, "--log-dir is for a data directory"},
		{Backup, []string{"--from", data, "--auth-file", text, to}, 1, "--auth-file is for an admin endpoint"},
		{Backup, []string{"--from", "http://127.0.0.1:1", to}, 1, "127.0.0.1:1"},
		{Backup, []string{"--from", "http://127.0.0.1:1", to}, 1, "; use --from to name the admin endpoint of a server that runs"},
		{Promote, []string{dir}, 1, "Name the directory that gozkd standby has after --into"},
		{Restore, nil, 2, "--from is missing"},
		{Restore, []string{"--from"}, 2, "flag needs an argument: -from"},
		{Restore, []string{"--from", good, "--nonsense"}, 2, "usage: gozkd restore"},
		{Restore, []string{"--from", good, "--memory"}, 2, "data directory of one server"},
		{Restore, []string{"--from", good, "-o", "tickTime=x"}, 2, "tickTime"},
		{Restore, []string{"--from", good, "--data-dir", data}, 1, "is not empty"},
		{Restore, []string{"--from", good, "--data-dir", empty, "-o", "dataLogDir=" + data}, 1, "is not empty"},
		{Restore, []string{"--from", bad, "--data-dir", empty}, 1, "corrupt checkpoint"},
		{Restore, []string{"--from", ensemble, "--data-dir", empty}, 1, "differs from that of the other servers"},
		{Restore, []string{"--from", filepath.Join(dir, "nolog"), "--data-dir", empty}, 1, "name the checkpoint alone"},
		{Restore, []string{"--from", filepath.Join(dir, "nostate"), "--data-dir", empty}, 1, "no state"},
		{Restore, []string{"--from", web.URL, "--data-dir", empty}, 1, "make a backup of it first"},
		{inspect, []string{text}, 1, "corrupt checkpoint"},
		{inspect, []string{filepath.Join(dir, "nolog")}, 1, "log in"},
	} {
		before := vfstest.Fingerprint(t, dir)
		status, _, stderr := run(t, c.main, c.args...)
		if status != c.status || !strings.Contains(stderr, c.stderr) {
			t.Errorf("%v: status %d\n%swant %d, %s", c.args, status, stderr, c.status, c.stderr)
		}
		if vfstest.Fingerprint(t, dir) != before {
			t.Errorf("%v: it changed a file", c.args)
		}
		if entries, err := os.ReadDir(filepath.Dir(to)); err != nil || len(entries) > 0 {
			t.Fatalf("%v: it left %v %v", c.args, entries, err)
		}
	}
	for _, main := range []cli.Main{Backup, Restore} {
		if out := mustRun(t, main, "--help"); !strings.HasPrefix(out, "usage: gozkd ") {
			t.Error(out)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := backup(ctx, data, "", "", to, cli.Env{}, nil); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	_, err = restore(ctx, fromFile(data), target{1, empty, empty}, time.Now(), false)
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestBackup_TLSOfClients checks that properties of clients in the environment do not keep a
// directory from being copied, as flags do: these are for an endpoint.
func TestBackup_TLSOfClients(t *testing.T) {
	getenv := func(name string) string {
		return map[string]string{"CLIENT_JVMFLAGS": "-Dzookeeper.client.secure=true"}[name]
	}
	for _, c := range []struct {
		args    []string
		refused bool
	}{
		{[]string{"--from", t.TempDir()}, false},
		{[]string{"--tls", "--from", t.TempDir()}, true},
		{[]string{"--from", "http://127.0.0.1:1"}, true},
	} {
		var stderr strings.Builder
		Backup(t.Context(), append(c.args, filepath.Join(t.TempDir(), "f")), cli.Env{Out: io.Discard, Err: &stderr, Getenv: getenv, Server: config.LocalServer(getenv, nil)})
		if strings.Contains(stderr.String(), "the flags of TLS are for an admin endpoint") != c.refused {
			t.Errorf("%q: %s", c.args, &stderr)
		}
	}
}
