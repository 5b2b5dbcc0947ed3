package moving

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/cli"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/clientflags"
	"github.com/gozkd/gozkd/internal/wakeup"
	"github.com/gozkd/gozkd/internal/zklearner"
)

const migrateUsage = `usage: gozkd migrate --from HOST:PORT,... --into DATA-DIR [flags]
       gozkd migrate status DATA-DIR
       gozkd migrate finish DATA-DIR --verify-tail DIR[:LOGDIR] ... | --unverified [--stopped]

Follows a running ZooKeeper ensemble, version 3.4 to 3.9, in memory: znodes, sessions and every
transaction, each compared with the digest that ZooKeeper sends. ZooKeeper needs no change. HOST:PORT
are its servers and their port for other servers, 2888 mostly.

finish waits until you have stopped the ZooKeeper servers, and founds a new ensemble with their last
state in DATA-DIR, as gozkd import does. Until then nothing is written, and an interrupted migration is
started again.

flags:
  --from HOST:PORT,...  the servers of ZooKeeper
  --into DATA-DIR       the data directory to make; it must be empty, except for myid
  --into-log-dir DIR    the directory of its log, if dataLogDir will differ from dataDir
  --id N                the number of its server among the server lines (default: the file myid, or 1)

flags of finish:
  --verify-tail DIR[:LOGDIR]  also read the logs of this stopped server: DIR is its dataDir, LOGDIR its
                              dataLogDir if that differs. Repeat the flag for each server. The logs of a
                              majority prove that nothing that was committed is missing
  --unverified                do without that proof, with the logs of fewer servers or of none: what the
                              leader committed in its last moment could be missing
  --stopped                   you confirm that most servers are stopped and stay so: don't look for them
`

// migration is a running `gozkd migrate`.
type migration struct {
	cli.Command
	target
	from    []string
	learner *zklearner.Learner
	// ended receives the result of the run: that of Run, or of a finish that has begun to write.
	ended chan error
	// look has an element when a leader was found: watch then surveys its servers.
	look chan struct{}

	finishing sync.Mutex // held by the only finish
	mu        sync.Mutex // guards seen and the output
	seen      map[string]bool
}

// Migrate runs `gozkd migrate`.
func Migrate(ctx context.Context, args []string, env cli.Env) int {
	m := &migration{Command: cli.Command{Env: env, Name: "migrate", Usage: migrateUsage}, seen: make(map[string]bool), ended: make(chan error, 1), look: make(chan struct{}, 1)}
	if len(args) > 0 && (args[0] == "status" || args[0] == "finish") {
		return m.ask(ctx, args[0], args[1:])
	}
	flags := flag.NewFlagSet(m.Name, flag.ContinueOnError)
	flags.Func("from", "", func(text string) error {
		m.from = strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
		return nil
	})
	m.register(flags)
	return m.Do(flags, args, m.check, func([]string) error { return m.run(ctx) })
}

func (m *migration) check(words []string) error {
	switch {
	case len(words) > 0:
		return fmt.Errorf("%s: want flags, status or finish", words[0])
	case len(m.from) == 0:
		return errors.New("--from is missing: name the servers of ZooKeeper with their port for other servers, such as zk1:2888,zk2:2888,zk3:2888")
	case m.into == "":
		return errors.New("--into is missing: name the data directory to make")
	}
	for _, addr := range m.from {
		if _, _, err := net.SplitHostPort(addr); err != nil {
			return fmt.Errorf("--from %s: want HOST:PORT with the port for other servers, 2888 mostly", addr)
		}
	}
	return nil
}

// run follows the source until a finish has founded the data directory.
func (m *migration) run(ctx context.Context) error {
	if err := m.usable(); err != nil {
		return err
	}
	l, err := listenControl(m.into)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	base := func(net.Listener) context.Context { return ctx }
	control := http.Server{Handler: m, ReadHeaderTimeout: 5 * time.Second, BaseContext: base}
	var running sync.WaitGroup
	defer running.Wait()
	// Removes the socket, and waits for answers, which cancel ends.
	defer func() { _ = control.Shutdown(context.Background()) }()
	defer cancel()
	m.learner = zklearner.New(zklearner.Config{Servers: m.from, Changed: m.changed, Look: clientflags.Purpose})
	running.Go(func() { m.end(m.learner.Run(ctx)) })
	running.Go(func() { _ = control.Serve(l) }) // until Shutdown
	m.line("migrating", "from %s into %s; finish with: gozkd migrate finish %s", strings.Join(m.from, ","), m.into, m.into)
	return m.watch(ctx)
}

// end ends the run. Only the first result counts.
func (m *migration) end(err error) {
	select {
	case m.ended <- err:
	default:
	}
}

// watch prints the progress until the run ends.
func (m *migration) watch(ctx context.Context) error {
	const soon, interval = time.Second / 2, 10 * time.Second
	tick := time.NewTimer(soon) // to say at once what is wrong with --from
	defer tick.Stop()
	var shown zklearner.Status
	var said time.Time // why there is no leader
	for {
		select {
		case err := <-m.ended:
			switch {
			case errors.Is(err, context.Canceled): // not if a finish came first: then there is a new ensemble
				return errors.New("interrupted: nothing was written; start it again to go on")
			case errors.Is(err, zklearner.ErrDiffers):
				return fmt.Errorf("%w\nStart the migration again. If this repeats, use gozkd import on the stopped servers", err)
			}
			return err
		case <-m.look:
			m.survey(ctx, m.learner.Status().Ensemble)
		case <-tick.C:
			tick.Reset(interval)
			switch st := m.learner.Status(); {
			case st.Leader != "" && st.Zxid != shown.Zxid:
				m.line("following", "%s", progress(&st))
				shown = st
			case st.Leader == "" && st.Why != nil:
				asked := !errors.Is(st.Why, zklearner.ErrNotAsked)
				if !asked {
					tick.Reset(soon)
				}
				if asked || time.Since(said) >= interval {
					m.line("waiting", "for a leader:\n%v", st.Why)
					said = time.Now()
				}
				shown = st
			}
		}
	}
}

// progress describes how far the replica is.
func progress(st *zklearner.Status) string {
	digest := "no digest yet"
	if st.Compared > 0 {
		digest = fmt.Sprintf("digest equal up to %v", st.EqualUpTo)
	}
	return fmt.Sprintf("zxid %v, lag %d, %s; %d znodes, %d ephemeral, %d sessions", st.Zxid, st.Lag(), digest, st.Znodes, st.Ephemerals, st.Sessions)
}

// changed prints that a leader is followed, or is gone.
func (m *migration) changed(st zklearner.Status) {
	if st.Leader == "" {
		m.line("lost", "the leader: %v", st.Why)
		return
	}
	m.line("leader", "%s: %s", st.Leader, progress(&st))
	wakeup.Send(m.look)
}

// line prints a line.
func (m *migration) line(label, format string, args ...any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.Line(label, format, args...)
}
