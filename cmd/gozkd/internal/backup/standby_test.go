package backup

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/archive"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/archive/store/storetest"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/cli"
	"github.com/gozkd/gozkd/internal/history"
	"github.com/gozkd/gozkd/internal/testkit/exhaustive"
	"github.com/gozkd/gozkd/internal/vfs"
	"github.com/gozkd/gozkd/server"
	"github.com/gozkd/gozkd/server/facts"
)

// standing is a standby that follows the archive of a shipping, as the command does.
type standing struct {
	*shipping
	standby *Standby
	client  *storetest.Client
	server  atomic.Pointer[server.Server] // nil: it does not run
	anew    int                           // how often it began anew
	stop    func()
}

func (s *shipping) stand(into string) *standing {
	p := &standing{shipping: s, client: s.memory.Client()}
	p.standby = &Standby{Store: p.client, Into: into, Interval: shipInterval, Logger: s.logger.Named("standby")}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { // stopped and awaited by stop
		defer close(done)
		for p.serve(ctx) {
		}
	}()
	p.stop = func() { cancel(); <-done }
	return p
}

// serve serves until ctx ends, or the standby must be prepared again: then it returns true.
func (p *standing) serve(ctx context.Context) (again bool) {
	if err := p.standby.Prepare(ctx); err != nil { // a supervisor starts the process again
		if !errors.Is(err, storetest.ErrFault) && !strings.Contains(err.Error(), "deleted meanwhile") &&
			!errors.Is(err, history.ErrNotCovered) && !strings.Contains(err.Error(), "no objects") && ctx.Err() == nil {
			p.t.Errorf("prepare: %v", err)
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
		}
		return ctx.Err() == nil
	}
	srv, err := server.New(server.Config{
		Standby: true, MemberID: StandbyID, Dir: p.standby.Dir(), InProcess: true, SnapCount: 100, SegmentBytes: 64 << 10,
		StandbyStats: p.standby.Stats,
	})
	if err != nil {
		p.t.Error(err)
		return false
	}
	following, end := context.WithCancelCause(ctx)
	go func() { end(p.standby.Run(following, srv.Backups(), srv.Facts().Digest)) }() // Start waits for its end
	p.server.Store(srv)
	err = srv.Start(following)
	p.server.Store(nil)
	if errors.Is(err, ErrAnew) {
		p.anew++
	} else if ctx.Err() == nil {
		p.t.Errorf("the standby has stopped: %v", err)
		return false
	}
	return ctx.Err() == nil
}

// sample compares the state of the standby with those of the members.
func (p *standing) sample() {
	if srv := p.server.Load(); srv != nil && srv.NotServing() == nil {
		zxid, digest := srv.Facts().Digest()
		if was, ok := p.samples[zxid]; ok && was != digest {
			p.t.Errorf("zxid %#x has digest %x at the standby, was %x", zxid, digest, was)
		}
		if mode := srv.Status().Mode; mode != facts.ReadOnly {
			p.t.Errorf("the standby is %s", mode)
		}
		p.hits["sampled"]++
	}
}

// promote promotes the standby, and tries again after faults of the store.
func (p *standing) promote(interrupt bool) (*restored, error) {
	for tries := 0; ; tries++ {
		if tries == 5 { // one of many requests always fails
			p.memory.Set(storetest.Faults{ListDelay: listDelay})
		}
		client := p.memory.Client()
		if interrupt {
			time.AfterFunc(time.Duration(p.rand.IntN(5000))*time.Millisecond, client.Kill)
		}
		done, err := promote(p.t.Context(), client, target{1, p.standby.Into, p.standby.Into}, time.Now())
		if !errors.Is(err, storetest.ErrFault) && !(err != nil && strings.Contains(err.Error(), "deleted meanwhile")) {
			return done, err
		}
		interrupt = false
		p.hits["promoted again"]++
		time.Sleep(time.Second)
	}
}

var standbyPlans = flag.Int("standby.plans", exhaustive.Or(1, 12), "TestStandby_Kills: how many plans are drawn; each takes some seconds")

// rarely is the longest pause in milliseconds of a client that a standby is watched beside: two
// writes per second, so that there is another state at each look, once per second.
const rarely = 2000

// Whatever dies, and whatever the store does: a standby shows states that the ensemble had, and
// nothing that the archive shows is missing after a promotion, which keeps all sessions. If the old
// ensemble lives on, it archives no more, and no other standby can be promoted.
func TestStandby_Kills(t *testing.T) {
	for plan := range *standbyPlans {
		t.Run(fmt.Sprint(plan), func(t *testing.T) {
			root := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				s := newShipping(t, uint64(plan)+1000, 3)
				s.pause = rarely
				if s.rand.IntN(2) == 0 { // a standby that was away finds less than it has left
					for id := 1; id <= 3; id++ {
						s.kill(id)
					}
					s.config.BaseInterval, s.config.Retention = time.Minute, 2*time.Minute
					s.revive()
				}
				ctx, cancel := context.WithCancel(t.Context())
				wait := s.write(ctx)
				p := s.stand(filepath.Join(root, "a"))
				other := s.stand(filepath.Join(root, "b"))
				for range 4 + s.rand.IntN(5) {
					for range 5 + s.rand.IntN(90) {
						time.Sleep(time.Second)
						s.sample()
						p.sample()
					}
					if s.rand.IntN(3) > 0 {
						s.step()
						continue
					}
					p.client.Kill()
					p.stop()
					time.Sleep(time.Duration(s.rand.IntN(400)) * time.Second)
					anew := p.anew
					p = s.stand(p.standby.Into)
					p.anew = anew
				}
				s.memory.Set(storetest.Faults{}) // so that there is something to promote
				s.revive()
				for _, p := range []*standing{p, other} {
					for p.server.Load() == nil {
						time.Sleep(time.Second)
					}
				}
				s.memory.Set(storetest.Faults{Fail: 0.2, LoseReply: 0.2, MaxDelay: 2 * time.Second, ListDelay: listDelay})
				time.Sleep(time.Duration(s.rand.IntN(20)) * time.Second)
				other.stop()
				lives := s.rand.IntN(2) == 0
				if !lives {
					for id := 1; id <= 3; id++ {
						s.kill(id)
						s.killMember(id)
					}
				}
				p.stop()
				p.checkPromotion()
				if lives {
					p.checkFenced()
				}
				if _, err := other.promote(false); err == nil || !strings.Contains(err.Error(), "another standby was promoted") {
					t.Errorf("the other standby: %v", err)
				}
				cancel()
				wait()
				for id := range maps.Clone(s.procs) {
					s.kill(id)
				}
				s.memory.Settle()
				if err := s.cluster.Close(); err != nil {
					t.Error(err)
				}
				t.Logf("anew %d times; %v", p.anew, s.hits)
			})
		})
	}
}

// checkPromotion promotes the standby, and compares the new directory with the archive.
func (p *standing) checkPromotion() {
	p.t.Helper()
	listed, err := p.listed()
	if err != nil {
		p.t.Fatal(err)
	}
	done, err := p.promote(p.rand.IntN(2) == 0)
	if err != nil {
		p.t.Fatal(err)
	}
	if !strings.HasPrefix(done.from.path, "the standby") {
		p.hits["cut at the promotion"]++
	}
	if done.from.held.Index < listed {
		p.t.Errorf("promoted entry %d, but %d was archived", done.from.held.Index, listed)
	}
	p.memory.Set(storetest.Faults{})
	time.Sleep(2 * listDelay)
	a := p.open()
	var zxid history.Moment
	if _, err := fmt.Sscanf(done.was.zxid, "%v", &zxid.Zxid); err != nil {
		p.t.Fatal(err)
	}
	was, err := restoreMoment(p.t.Context(), a, zxid)
	if err != nil {
		p.t.Fatal(err)
	}
	if digest := fmt.Sprintf("%#016x", was.tree.Digest()); digest != done.was.digest {
		p.t.Errorf("promoted zxid %s with digest %s, the archive has %s", done.was.zxid, done.was.digest, digest)
	}
	now := mustRead(p.t, p.standby.Into)
	if n := was.tree.NumSessions(); n == 0 || now.tree.NumSessions() != n || now.tree.NumEphemerals() != was.tree.NumEphemerals() {
		p.t.Errorf("%d sessions and %d ephemerals, there were %d and %d",
			now.tree.NumSessions(), now.tree.NumEphemerals(), n, was.tree.NumEphemerals())
	}
	if a, b := persistent(was.tree), persistent(now.tree); !slices.Equal(a, b) {
		p.t.Errorf("%d znodes after the promotion: %q, want %q", len(b), b, a)
	}
	if _, err := promote(p.t.Context(), p.memory.Client(), target{1, p.standby.Into, p.standby.Into}, time.Now()); err == nil {
		p.t.Error("promoted twice")
	}
	if err := p.standby.Prepare(p.t.Context()); err == nil {
		p.t.Error("a promoted directory is a standby again")
	}
}

// listed returns the last entry that a listing of the archive shows.
func (p *standing) listed() (uint64, error) {
	for {
		a, err := archive.Open(p.t.Context(), p.memory.Client(), "")
		if err == nil {
			span, err := a.At(history.Moment{})
			return span.Last, err
		}
		if !errors.Is(err, storetest.ErrFault) {
			return 0, err
		}
	}
}

// checkFenced waits until all members that live archive no more, and checks that they do not.
func (p *standing) checkFenced() {
	p.t.Helper()
	p.revive()
	time.Sleep(2 * wholeRounds * shipInterval)
	for id, proc := range p.procs {
		if proc.shipper.Stats().Fenced == "" {
			p.t.Errorf("member %d is not fenced\n%s", id, p.log.String())
		}
	}
	last := p.archived()
	time.Sleep(time.Minute)
	if now := p.archived(); now != last {
		p.t.Errorf("entry %d was archived after the fence, at %d", now, last)
	}
	if p.log.Count("the archive is closed to this ensemble") == 0 {
		p.t.Error("no member says that it is fenced")
	}
}

// A standby that was away while the archive deleted what follows its state begins anew, and goes on
// to follow (W2). While the old ensemble lives, a promotion closes the archive to it; to delete the
// fence opens it again.
func TestStandby_BeginsAnew(t *testing.T) {
	root := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := newShipping(t, 5, 1)
		s.pause = rarely
		s.kill(1)
		s.config.BaseInterval, s.config.Retention = time.Minute, 2*time.Minute
		s.start(1)
		ctx, cancel := context.WithCancel(t.Context())
		wait := s.write(ctx)
		p := s.stand(filepath.Join(root, "a"))
		time.Sleep(time.Minute)
		p.stop()
		time.Sleep(7 * time.Minute)
		p = s.stand(p.standby.Into)
		time.Sleep(2 * time.Minute)
		s.sample()
		if p.sample(); p.anew != 1 || p.standby.Stats().Lag > 2*shipInterval || time.Since(p.standby.Stats().Time) > 3*shipInterval {
			t.Errorf("anew %d times, %+v", p.anew, p.standby.Stats())
		}
		p.stop()
		time.Sleep(3 * shipInterval) // in which there is more than the standby has
		p.checkPromotion()
		p.checkFenced()
		for _, name := range s.memory.Names() {
			if strings.Contains(name, "/promoted/") {
				s.memory.Change(name, func([]byte) []byte { return nil })
			}
		}
		last := s.archived()
		time.Sleep(time.Minute)
		if s.archived() == last || s.procs[1].shipper.Stats().Fenced != "" {
			t.Error("the archive is still closed")
		}
		cancel()
		wait()
		s.end()
	})
}

// A standby whose state differs from a base of the archive stops, and is not promoted (W3). serve
// refuses the directory of a standby.
func TestStandby_Diverged(t *testing.T) {
	root := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := newShipping(t, 1, 1)
		s.kill(1)
		s.config.BaseInterval = time.Minute
		s.start(1)
		ctx, cancel := context.WithCancel(t.Context())
		wait := s.write(ctx)
		p := s.stand(filepath.Join(root, "a"))
		time.Sleep(5 * time.Minute)
		if p.standby.Stats().Verified == 0 || p.standby.Stats().Lag > 2*shipInterval || time.Since(p.standby.Stats().Time) > 3*shipInterval {
			t.Errorf("%+v", p.standby.Stats())
		}
		if err := CheckServable(p.standby.Into); err == nil {
			t.Error("serve takes the directory of a standby")
		}
		p.stop()
		cancel()
		wait()
		s.end()
		a := s.open()
		span := a.Spans()[0]
		p.standby.noted = make(map[archive.Place]digestAt)
		for piece, err := range a.Objects(t.Context(), span, span.First) {
			if err != nil {
				t.Fatal(err)
			}
			if _, ok := a.BaseAt(piece.End); ok {
				p.standby.noted = map[archive.Place]digestAt{piece.End: {1, 2}} // of the last base
			}
		}
		if err := p.standby.compare(t.Context(), a); !errors.Is(err, errDiverged) {
			t.Errorf("another digest: %v", err)
		}
		if _, err := os.Stat(filepath.Join(p.standby.Dir(), "DIVERGED")); err != nil {
			t.Error(err)
		}
		if _, err := p.promote(false); err == nil || !strings.Contains(err.Error(), "differs") {
			t.Errorf("promote: %v", err)
		}
	})
}

// A standby refuses a directory that promote would refuse, and promote refuses before it fences.
// The fence is for the archive that the standby followed last, and the log goes where serve looks
// for it.
func TestStandby_Directories(t *testing.T) {
	root := t.TempDir()
	withArchive(t, 1, func(t *testing.T, s *shipping) {
		into, logs := filepath.Join(root, "a"), filepath.Join(root, "logs")
		standby := func(url string) *Standby {
			return &Standby{Store: s.memory.Client(), URL: url, Into: into, Interval: shipInterval, Logger: s.logger}
		}
		stray := filepath.Join(into, "wal") // of a server whose data directory is another
		put := func() {
			if err := errors.Join(os.MkdirAll(into, 0o700), os.WriteFile(stray, nil, 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		put()
		if err := standby("file:///a").Prepare(t.Context()); err == nil || !strings.Contains(err.Error(), "it holds wal") {
			t.Errorf("a used directory: %v", err)
		}
		if err := os.Remove(stray); err != nil {
			t.Fatal(err)
		}
		for _, url := range []string{"file:///a", "file:///b"} {
			if err := standby(url).Prepare(t.Context()); err != nil {
				t.Fatal(err)
			}
			source, err := os.ReadFile(filepath.Join(into, "standby", "source"))
			if string(source) != url+"\n" {
				t.Errorf("the source is %q, %v; followed is %s", source, err, url)
			}
		}
		fence := filepath.Join(into, "standby", "fence") // of a promotion that was interrupted
		name := fmt.Sprintf("%016x/promoted/1-a", s.open().Ensemble)
		if err := os.WriteFile(fence, []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
		again := standby("file:///b")
		again.anew = true
		lock, err := vfs.OS{}.Lock(filepath.Join(into, "standby", "LOCK"))
		if err != nil {
			t.Fatal(err)
		}
		if err := again.Prepare(t.Context()); !errors.Is(err, vfs.ErrLocked) {
			t.Errorf("a standby that runs begins anew: %v", err)
		}
		if err := errors.Join(lock.Close(), again.Prepare(t.Context())); err != nil {
			t.Fatal(err)
		}
		if kept, err := os.ReadFile(fence); string(kept) != name {
			t.Errorf("the fence is %q, %v", kept, err)
		}
		if err := os.Remove(fence); err != nil {
			t.Fatal(err)
		}
		stray = filepath.Join(into, "stray")
		put()
		_, err = promote(t.Context(), s.memory.Client(), target{1, into, into}, time.Now())
		if err == nil || slices.ContainsFunc(s.memory.Names(), func(n string) bool { return strings.Contains(n, "/promoted/") }) {
			t.Errorf("promote: %v; the archive has %q", err, s.memory.Names())
		}
		if err := os.Remove(stray); err != nil {
			t.Fatal(err)
		}
		// A promotion that was killed leaves a part of a checkpoint; the next one goes on.
		if err := os.WriteFile(filepath.Join(into, "checkpoint.db.new"), []byte("part"), 0o600); err != nil {
			t.Fatal(err)
		}
		mustRun(t, Promote, into, "--unfenced", "-o", "dataLogDir="+logs)
		if _, err := readSource(into, logs); err != nil {
			t.Error(err)
		}
		if status, _, said := run(t, Promote, into); status == cli.OK || !strings.Contains(said, "has the data of a server") {
			t.Errorf("promoted again: status %d, %s", status, said)
		}
	})
}
