package main

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"text/template"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/compat/server"
)

// world is an ensemble and the processes of a program that uses it.
type world struct {
	kind      server.Kind
	dir, logs string
	name      string // of the ensemble
	ensemble  *server.Ensemble
	started   []*server.Process
	dead      *server.Member // the member that killLeader killed
}

// run starts an ensemble, runs check, and ends all processes.
func (w *world) run(ctx context.Context, check func(context.Context, *world) string) (figures string) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	must.Do(os.MkdirAll(w.dir, 0o755))
	keys := server.Defaults()
	keys["tickTime"], keys["minSessionTimeout"] = "1000", "2000"
	if w.kind.Name == "gozkd" {
		keys["admin.enableServer"], keys["admin.serverPort"], keys["gozkd.web"] = "true", "0", "read"
	}
	w.ensemble = must.Get(w.kind.StartEnsemble(ctx, server.EnsembleOptions{Members: 3, Keys: keys}))
	w.name = w.ensemble.Name()
	defer must.Finally(w.ensemble.Stop)
	defer must.Finally(w.stop)
	return check(ctx, w)
}

// stop ends the program's processes and keeps all logs if there is a folder for them.
func (w *world) stop() error {
	return must.Try(func() {
		for _, p := range slices.Backward(w.started) {
			must.Do(p.Kill())
		}
		if w.logs == "" {
			return
		}
		to := filepath.Join(w.logs, filepath.Base(w.dir))
		must.Do(os.MkdirAll(to, 0o755))
		for _, p := range w.started {
			must.Do(os.WriteFile(filepath.Join(to, p.Name()+".log"), []byte(p.Log()), 0o644))
		}
		must.Do(os.WriteFile(filepath.Join(to, "ensemble.log"), []byte(w.ensemble.Log()), 0o644))
	})
}

// connect returns the addresses of the members, for the connect string of a client.
func (w *world) connect(separator string) string {
	return strings.Join(w.ensemble.Addrs(), separator)
}

// configurations are those of the programs, as templates.
//
//go:embed bookkeeper/bookie.conf clickhouse/replica.xml hadoop/log4j.properties hbase/site.xml hdfs/site.xml
//go:embed kafka/broker.properties patroni/member.yml
var configurations embed.FS

// configure writes a configuration with these values to a file in the world's directory, and
// returns the file's path.
func (w *world) configure(configuration, file string, values map[string]any) (path string) {
	var text bytes.Buffer
	must.Do(must.Get(template.ParseFS(configurations, configuration)).Option("missingkey=error").Execute(&text, values))
	path = filepath.Join(w.dir, file)
	must.Do(os.WriteFile(path, text.Bytes(), 0o644))
	return path
}

// start starts a process of the program. A process of the same name continues its log.
func (w *world) start(name string, cmd *exec.Cmd) *server.Process {
	p := server.Start(name, cmd, w.log(name))
	w.started = append(w.started, p)
	return p
}

func (w *world) log(name string) string { return filepath.Join(w.dir, name+".log") }

// ask runs a command to its end and returns its output.
func (w *world) ask(ctx context.Context, name string, cmd *exec.Cmd) string {
	must.Do(os.RemoveAll(w.log(name))) // of an earlier command
	p := w.start(name, cmd)
	select {
	case <-p.Done():
	case <-ctx.Done():
		must.Failf("%s: %w", name, ctx.Err())
	}
	if cmd.ProcessState.ExitCode() != 0 {
		must.Failf("%s: %s\n%s", name, cmd.ProcessState, tail(p.Log()))
	}
	return p.Log()
}

// await polls until ready returns nil.
func (w *world) await(ctx context.Context, what string, ready func() error) {
	const patience = 3 * time.Minute
	must.Await(ctx, patience, what, func() error { return must.Try(func() { must.Do(ready()) }) })
}

// httpDo sends a request and returns the body of the answer. An answer other than 200 is an error.
func httpDo(ctx context.Context, method, url, body string) (answer []byte, err error) {
	err = must.Try(func() {
		reply := must.Get(http.DefaultClient.Do(must.Get(http.NewRequestWithContext(ctx, method, url, strings.NewReader(body)))))
		defer must.Finally(reply.Body.Close)
		if answer = must.Get(io.ReadAll(reply.Body)); reply.StatusCode != http.StatusOK {
			must.Failf("%s: %s: %s", url, reply.Status, tail(string(answer)))
		}
	})
	return answer, err
}

// killLeader kills the ensemble's leader as kill -9 does, and returns when the others serve.
func (w *world) killLeader(ctx context.Context) {
	w.await(ctx, "a leader of the ensemble", func() (err error) {
		w.dead, err = w.ensemble.Leader(ctx)
		return err
	})
	must.Do(w.dead.Kill())
	w.ensemble.AwaitServing(ctx)
}

// returnLeader restarts the member that killLeader killed.
func (w *world) returnLeader(ctx context.Context) {
	w.dead.Start()
	w.ensemble.AwaitServing(ctx)
}

// aroundLeader works three times: before the ensemble's leader is killed, without that member, and
// after its return.
func (w *world) aroundLeader(ctx context.Context, work func()) {
	work()
	w.killLeader(ctx)
	work()
	w.returnLeader(ctx)
	work()
}

// worker is a process that works until a line arrives at its standard input, and prints "acked ID"
// for each acknowledged piece of work.
type worker struct {
	*server.Process
	stdin io.WriteCloser
}

func (w *world) startWorker(name string, cmd *exec.Cmd) worker {
	stdin := must.Get(cmd.StdinPipe())
	return worker{w.start(name, cmd), stdin}
}

// acked returns the acknowledged ids so far.
func (k worker) acked() []string { return values(k.Log(), "acked") }

// more waits until n more ids are acknowledged.
func (k worker) more(ctx context.Context, w *world, n int) {
	target := len(k.acked()) + n
	w.await(ctx, fmt.Sprintf("%d acknowledgements", target), func() error {
		if !k.Running() {
			return nil
		}
		if got := len(k.acked()); got < target {
			return fmt.Errorf("%s: %d acknowledgements of %d", k.Name(), got, target)
		}
		return nil
	})
	if !k.Running() {
		must.Failf("%s ended:\n%s", k.Name(), tail(k.Log()))
	}
}

// end lets the worker end and returns its output.
func (k worker) end(ctx context.Context) string {
	must.Get(io.WriteString(k.stdin, "\n"))
	must.Do(k.stdin.Close())
	select {
	case <-k.Done():
	case <-ctx.Done():
		must.Failf("%s does not end: %w\n%s", k.Name(), ctx.Err(), tail(k.Log()))
	}
	return k.Log()
}

// tail returns the last lines of a log.
func tail(log string) string {
	const size = 2000
	return log[max(0, len(log)-size):]
}
