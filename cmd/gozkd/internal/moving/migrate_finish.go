package moving

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/zkdata"
	"github.com/gozkd/gozkd/internal/backoff"
	"github.com/gozkd/gozkd/internal/memberid"
	"github.com/gozkd/gozkd/internal/neterr"
	"github.com/gozkd/gozkd/internal/zkfiles"
	"github.com/gozkd/gozkd/internal/zklearner"
)

// say prints a line of a report.
type say func(label, format string, args ...any)

// finish founds the data directory once the source is stopped. After an error that the migration
// survives, it can be called again.
func (m *migration) finish(ctx context.Context, q *question, say say) error {
	if !m.finishing.TryLock() {
		return errors.New("another finish is waiting: interrupt it first")
	}
	defer m.finishing.Unlock()
	if st := m.learner.Status(); st.Leaders > 0 { // say so before ZooKeeper is stopped
		if _, _, err := prove(q, st.Ensemble); err != nil {
			return err
		}
	}
	if err := m.usable(); err != nil {
		return err
	}
	if err := m.awaitEnd(ctx, q, say); err != nil {
		return err
	}
	return m.learner.Do(ctx, func(r *zklearner.Replica) error { return m.foundWith(r, q, say) })
}

// findAll finds the directories of different servers: one that counted twice would prove too much.
func findAll(dirs []string) (all []*zkdata.Directory, err error) {
	for _, dir := range dirs {
		d, err := zkdata.Find(dir)
		if err != nil {
			return nil, err
		}
		for _, other := range all {
			if zkdata.SameServer(d, other) {
				return nil, fmt.Errorf("--verify-tail %s and %s are the same server: name each server once", other.Name, d.Name)
			}
		}
		all = append(all, d)
	}
	return all, nil
}

// prove finds the directories of --verify-tail, and counts those of voters. It returns an error
// unless their logs can prove that nothing is missing, or the user has said --unverified.
func prove(q *question, e zklearner.Ensemble) (all []*zkdata.Directory, voters int, err error) {
	if all, err = findAll(q.Tail); err != nil {
		return nil, 0, err
	}
	voters = votersAmong(all, e)
	switch need := e.Blocking(); {
	case q.Unverified || need > 0 && voters >= need:
		return all, voters, nil
	case len(q.Tail) == 0:
		err = errors.New("name the directories of the ZooKeeper servers with --verify-tail, or say --unverified")
	case need == 0:
		err = errors.New("ZooKeeper before 3.5 does not name its servers, so no logs can prove that nothing is missing: " +
			"name those of all servers with --verify-tail, and add --unverified")
	default:
		err = fmt.Errorf("the logs of %d voters prove nothing, those of %d of the %d voters do: name more with --verify-tail, "+
			"or add --unverified", voters, need, len(e.Voters))
	}
	return nil, 0, err
}

// votersAmong counts the directories that are not those of an observer.
func votersAmong(all []*zkdata.Directory, e zklearner.Ensemble) (n int) {
	for _, d := range all {
		name := fmt.Sprintf("server.%d", memberid.Number(d.ID))
		if d.ID == 0 || slices.ContainsFunc(e.Voters, func(v zklearner.Voter) bool { return v.Name == name }) {
			n++
		}
	}
	return n
}

// awaitEnd waits until no leader is followed and so many voters are stopped that nothing commits.
func (m *migration) awaitEnd(ctx context.Context, q *question, say say) error {
	const interval = 200 * time.Millisecond
	said := ""
	st := m.learner.Status()
	if st.Leaders == 0 {
		return fmt.Errorf("no leader of ZooKeeper has been followed yet:\n%w", st.Why)
	}
	m.survey(ctx, st.Ensemble) // remembers which servers can be reached
	for ; ; st = m.learner.Status() {
		text := ""
		switch {
		case st.Leader != "":
			text = fmt.Sprintf("stop the ZooKeeper servers now, the leader %s last", st.Leader)
		case q.Stopped:
			return nil
		case len(st.Ensemble.Voters) == 0:
			return errors.New("ZooKeeper before 3.5 does not name its servers: stop them all and keep them stopped, and say --stopped")
		default:
			stopped, rest := m.survey(ctx, st.Ensemble)
			if stopped >= st.Ensemble.Blocking() {
				say("stopped", "%d of %d ZooKeeper servers: nothing can be committed any more", stopped, len(st.Ensemble.Voters))
				return nil
			}
			text = fmt.Sprintf("%d of %d servers are stopped, and %d must be\n%s", stopped, len(st.Ensemble.Voters), st.Ensemble.Blocking(), strings.Join(rest, "\n"))
		}
		if text != said {
			say("waiting", "%s", text)
			said = text
		}
		if !backoff.Sleep(ctx, interval) {
			return errors.New("interrupted: the migration goes on")
		}
	}
}

// survey connects to the election ports of the voters, on which a running server listens. It
// returns how many are stopped: the connection is refused, and was not before. rest has a line
// for each of the others.
func (m *migration) survey(ctx context.Context, e zklearner.Ensemble) (stopped int, rest []string) {
	states := make([]string, len(e.Voters))
	var running sync.WaitGroup
	for i, v := range e.Voters {
		running.Go(func() { states[i] = m.probe(ctx, v) })
	}
	running.Wait()
	for i, state := range states {
		if state == "" {
			stopped++
			continue
		}
		rest = append(rest, e.Voters[i].Name+": "+state)
	}
	return stopped, rest
}

// probe returns "" for a stopped voter, and otherwise describes the voter.
func (m *migration) probe(ctx context.Context, v zklearner.Voter) string {
	const timeout = time.Second
	d := net.Dialer{Timeout: timeout}
	for _, addr := range v.Election {
		if host, _, err := net.SplitHostPort(addr); err != nil || net.ParseIP(host).IsUnspecified() {
			return "its server line has the address " + addr + ", which is that of no server: say --stopped when it is"
		}
		c, err := d.DialContext(ctx, "tcp", addr)
		if err == nil {
			_ = c.Close() // nothing was sent
		}
		m.mu.Lock()
		m.seen[addr] = m.seen[addr] || err == nil
		seen := m.seen[addr]
		m.mu.Unlock()
		switch {
		case err == nil:
			return "is running: it listens on " + addr
		case !seen:
			return "unknown: it could not be reached before either: " + err.Error()
		case !neterr.Is(err, syscall.ECONNREFUSED): // a process may listen
			return "unknown: " + err.Error()
		}
	}
	if len(v.Election) == 0 {
		return "unknown: its server line has no port for elections that can be read"
	}
	return ""
}

// foundWith founds the data directory. An error ends the migration if the replica is spoilt.
func (m *migration) foundWith(r *zklearner.Replica, q *question, say say) error {
	voters := m.learner.Status().Ensemble
	if !r.Whole() {
		return errors.New("the last leader did not send its whole state: start ZooKeeper again, or use gozkd import on the stopped servers")
	}
	all, read, err := prove(q, voters)
	if err != nil {
		return err
	}
	proved := voters.Blocking() > 0 && read >= voters.Blocking()
	before := r.Last()
	if err := m.verifyTail(r, all, say); err != nil {
		if r.Last() != before { // the replica has a part of a log, which no leader has sent
			m.end(err)
		}
		return err
	}
	if !r.Settled() && !proved {
		return errors.New("the last leader did not confirm its state: start ZooKeeper again, name the logs of a majority with --verify-tail, or use gozkd import")
	}
	compared, upTo := r.Compared()
	digest := r.Digest()
	tree, closed, err := r.Finish()
	if err == nil {
		err = m.found(tree)
	}
	if err != nil {
		err = fmt.Errorf("%w\nUse gozkd import on the stopped servers", err)
		m.end(err)
		return err
	}
	say("founded", "%s: zxid %v, %s znodes, %s of them ephemeral, %s sessions", m.into, tree.LastZxid(),
		humanize.Comma(int64(tree.NumZnodes())), humanize.Comma(int64(tree.NumEphemerals())), humanize.Comma(int64(tree.NumSessions())))
	if closed > 0 {
		say("closed", "%d sessions that owned ephemerals but were not open", closed)
	}
	if compared > 0 {
		say("digest", "%#x; compared with ZooKeeper's %d times, and equal up to %v", digest, compared, upTo)
	} else {
		say("digest", "%#x; not compared: servers before 3.6 send none", digest)
	}
	switch {
	case proved:
		say("proved", "nothing that was committed is missing: the logs of %d of %d servers were read", read, len(voters.Voters))
	default:
		say("not proved", "that nothing is missing: what the leader committed in its last moment could be, since the logs of %d voters were read", read)
	}
	say("next", "%s", m.nextSteps())
	m.end(nil)
	return nil
}

// verifyTail applies the transactions of stopped servers after the replica's last one.
func (m *migration) verifyTail(r *zklearner.Replica, all []*zkdata.Directory, say say) error {
	if len(all) == 0 {
		return nil
	}
	d, err := zkdata.Newest(all)
	if err != nil {
		return err
	}
	last, n := r.Last(), int64(0)
	found, torn, err := zkdata.Tail(d, last, func(x *zkfiles.Record) error {
		n++
		return r.Apply(x)
	})
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", d.Name, err)
	case !found:
		return fmt.Errorf("%s, the newest of the directories, does not have transaction %v, which the leader has sent: are these all servers of this ensemble?\n"+
			"Name the others, or use gozkd import", d.Name, last)
	}
	say("tail", "%s: %s transactions after %v", d.Name, humanize.Comma(n), last)
	for _, t := range torn {
		say("left out", "%s: the server was killed while it wrote it, and acknowledged nothing of it", t)
	}
	return nil
}
