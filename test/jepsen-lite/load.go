package jepsenlite

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/internal/backoff"
	"github.com/gozkd/gozkd/internal/testkit/must"
)

// A load is a kind of use of the ensemble, run by several workers at once.
type load struct {
	name    string
	workers int
	// prepare creates what the workers need below w.dir, which exists. nil: nothing.
	prepare func(w *worker)
	// run works until ctx ends.
	run func(ctx context.Context, w *worker)
	// settle performs the final reads, when the ensemble is healed and all runs have ended; or nil.
	settle func(w *worker)
}

// loads returns all loads. Each has a znode of its name below the round's root.
func loads() []load {
	return []load{
		{name: loadRegister, workers: 5, run: runRegister},
		{name: loadSet, workers: 2, run: runSet, settle: settleList},
		{name: loadSequence, workers: 2, run: runSequence},
		{name: loadBank, workers: 3, prepare: prepareBank, run: runBank, settle: settleBank},
		{name: loadQueue, workers: 2, run: runQueue, settle: settleList},
		{name: loadLock, workers: 3, run: runLock},
		{name: loadMember, workers: 2, run: runMember, settle: settleMember},
		{name: loadWatch, workers: 3, run: runWatch, settle: settleWatch},
		{name: loadRewatch, workers: 3, run: runRewatch},
		{name: loadPipeline, workers: 3, run: runPipeline},
	}
}

// loadSequence creates sequential znodes: no name comes twice, later ones get higher numbers.
const loadSequence = "sequence"

func runSequence(ctx context.Context, w *worker) {
	for w.next(ctx) {
		// The history has the result.
		_, _ = w.create(w.dir+"/n-", w.value(), zk.FlagSequence)
	}
}

// loadSet is a growing set of znodes with unique names: a synced list must have every acknowledged
// name and no other. Some are of multis that fail.
const loadSet = "set"

func runSet(ctx context.Context, w *worker) {
	for w.next(ctx) {
		if w.rng.IntN(20) == 0 {
			settleList(w)
			continue
		}
		name := w.dir + "/" + w.value()
		if w.rng.IntN(20) == 0 { // fails: nobody may ever see the name
			_, _ = w.Multi(&zk.CreateRequest{Path: name, Acl: openACL()}, &zk.CheckVersionRequest{Path: w.dir, Version: 1 << 20})
			continue
		}
		// The history has the result.
		_, _ = w.create(name, "", 0)
	}
}

// settleList reads what there is.
func settleList(w *worker) {
	// As above.
	_, _ = w.syncedChildren(w.dir)
}

// loadQueue puts and takes items: each is taken once, or still there in the end.
const loadQueue = "queue"

func runQueue(ctx context.Context, w *worker) {
	for w.next(ctx) {
		if w.rng.IntN(2) == 0 {
			// The history has the result.
			_, _ = w.create(w.dir+"/q-", w.value(), zk.FlagSequence)
			continue
		}
		names, _, err := w.Children(w.dir)
		if err != nil || len(names) == 0 {
			continue
		}
		first := w.dir + "/" + slices.Min(names)
		if _, stat, err := w.Get(first); err == nil {
			// As above.
			_ = w.Delete(first, stat.Version)
		}
	}
}

// loadLock: the lowest ephemeral sequential znode is the lock; its number is the fencing token.
const loadLock = "lock"

func runLock(ctx context.Context, w *worker) {
	for w.next(ctx) {
		own, err := w.create(w.dir+"/l-", w.value(), zk.FlagEphemeral|zk.FlagSequence)
		if err != nil {
			continue // if the create succeeded, its znode goes with the session; the others wait until then
		}
		w.awaitLock(ctx, own)
		// Released or abandoned: until the delete is answered, nobody else may acquire.
		for {
			err := w.Delete(own, -1)
			if err == nil || errors.Is(err, zk.ErrNoNode) || errors.Is(err, zk.ErrSessionExpired) || ctx.Err() != nil {
				break
			}
		}
	}
}

// awaitLock returns some time after own was the lowest, when own is gone, or the round ends.
func (w *worker) awaitLock(ctx context.Context, own string) {
	for w.next(ctx) {
		names, _, err := w.Children(w.dir)
		switch {
		case err != nil:
		case !slices.Contains(names, baseName(own)):
			return
		case slices.Min(names) == baseName(own):
			w.next(ctx) // holds it
			return
		}
	}
}

// loadRegister creates, sets by version, deletes and reads znodes from several clients, checked for
// linearizability. The keys change after some operations, because the check's cost grows with a
// key's history.
const (
	loadRegister   = "register"
	registerKeys   = 3
	registerPeriod = 150 // in paces
)

func runRegister(ctx context.Context, w *worker) {
	type key struct {
		period time.Duration
		n      int
	}
	versions := map[key]int32{} // as last read
	for w.next(ctx) {
		k := key{w.Recorder.Now() / (registerPeriod * w.Pace), w.rng.IntN(registerKeys)}
		path := fmt.Sprintf("%s/%d-%d", w.dir, k.period, k.n)
		switch p := w.rng.IntN(100); {
		case p < 20:
			if _, err := w.create(path, w.value(), 0); err == nil {
				versions[k] = 0
			}
		case p < 50:
			if stat, err := w.Set(path, []byte(w.value()), versions[k]); err == nil {
				versions[k] = stat.Version
			}
		case p < 60:
			if stat, err := w.Set(path, []byte(w.value()), -1); err == nil {
				versions[k] = stat.Version
			}
		case p < 65:
			// The history has the result.
			_ = w.Delete(path, versions[k])
		default:
			if _, stat, err := w.syncedGet(path); err == nil {
				versions[k] = stat.Version
			}
		}
	}
}

// loadWatch sets watches and changes what is watched. It ignores the client's channels: the history
// has every event.
const (
	loadWatch = "watch"
	watchKeys = 4
)

func runWatch(ctx context.Context, w *worker) {
	for w.next(ctx) {
		path := watchKey(w, w.rng.IntN(watchKeys))
		child := fmt.Sprintf("%s/%d", path, w.rng.IntN(2))
		// The history has the results.
		switch w.rng.IntN(12) {
		case 0, 1:
			_, _, _, _ = w.GetW(path)
		case 2:
			_, _, _, _ = w.ExistsW(path)
		case 3:
			_, _, _, _ = w.ChildrenW(path)
		case 4:
			_, _, _ = w.Get(path)
		case 5:
			_, _, _ = w.Children(path)
		case 6, 7:
			_, _ = w.Set(path, []byte(w.value()), -1)
		case 8:
			_, _ = w.create(path, w.value(), 0)
		case 9:
			_ = w.Delete(path, -1)
		case 10:
			_, _ = w.create(child, w.value(), 0)
		case 11:
			_ = w.Delete(child, -1)
		}
	}
}

// settleWatch reads everything that may be watched: changes that it shows must have fired.
func settleWatch(w *worker) {
	for i := range watchKeys {
		path := watchKey(w, i)
		_, _ = w.Sync(path)
		_, _, _ = w.Exists(path)
		_, _, _ = w.Children(path)
	}
}

func watchKey(w *worker, i int) string { return fmt.Sprintf("%s/%d", w.dir, i) }

// loadMember creates sessions with several ephemerals each, which are closed or expire. Observers
// must see all of a session's ephemerals or none, and none may vanish too early.
const (
	loadMember      = "member"
	memberLoadNodes = 3
	// shortTimeout is the least timeout of these sessions; the longest is twice as long.
	shortTimeout = 2 * time.Second
)

func runMember(ctx context.Context, w *worker) {
	for ctx.Err() == nil {
		w.liveOnce(ctx)
	}
}

// liveOnce creates a session and lets it live and end.
func (w *worker) liveOnce(ctx context.Context) {
	w.made++
	name := fmt.Sprintf("%s.%d", w.name, w.made)
	timeout := w.Short + time.Duration(w.rng.Int64N(int64(w.Short)))
	c, err := connect(w.Recorder, loadMember+"-"+name, w.Addresses, w.home+w.made, timeout)
	if err != nil {
		backoff.Sleep(ctx, time.Second) // out of luck with sockets
		return
	}
	defer c.Close()
	if c.await(ctx) != nil {
		return
	}
	var creates []any
	for i := range memberLoadNodes {
		creates = append(creates, &zk.CreateRequest{Path: fmt.Sprintf("%s/%s_%d", w.dir, name, i), Acl: openACL(), Flags: zk.FlagEphemeral})
	}
	// The history has the result.
	_, _ = c.Multi(creates...)
	for end := w.rng.IntN(60); end > 0 && w.next(ctx); end-- {
		// Others look, and its own session shows that it lives.
		_, _, _ = w.Children(w.dir)
		_, _ = c.Set(fmt.Sprintf("%s/%s_0", w.dir, name), []byte(w.value()), -1)
	}
	if w.rng.IntN(2) == 0 {
		return
	}
	// The connection may be broken already.
	_ = c.vanish()
	for patience := time.Now().Add(2 * timeout); time.Now().Before(patience) && w.next(ctx); {
		_, _, _ = w.Children(w.dir)
	}
}

// settleMember waits until the last sessions must have expired, whoever led meanwhile.
func settleMember(w *worker) {
	for end := time.Now().Add(8 * w.Short); time.Now().Before(end); {
		if names, err := w.syncedChildren(w.dir); err == nil && len(names) == 0 {
			return
		}
		time.Sleep(w.Pace) // between two reads
	}
}

// loadBank moves money between accounts in multis with the versions that it read. Now and then it
// reads all accounts and confirms the versions with a multi of checks: then the sum must be the
// initial one.
const (
	loadBank     = "bank"
	bankAccounts = 5
	bankEach     = 100
)

func prepareBank(w *worker) {
	for i := range bankAccounts {
		must.Get(w.create(account(w, i), strconv.Itoa(bankEach), 0))
	}
}

func runBank(ctx context.Context, w *worker) {
	for w.next(ctx) {
		if w.rng.IntN(5) == 0 {
			settleBank(w)
			continue
		}
		from := w.rng.IntN(bankAccounts)
		to := (from + 1 + w.rng.IntN(bankAccounts-1)) % bankAccounts
		x, sx, err := w.balance(from)
		if err != nil {
			continue
		}
		y, sy, err := w.balance(to)
		if err != nil {
			continue
		}
		sum := 1 + w.rng.IntN(9)
		// The history has the result.
		_, _ = w.Multi(
			&zk.SetDataRequest{Path: account(w, from), Data: []byte(strconv.Itoa(x - sum)), Version: sx.Version},
			&zk.SetDataRequest{Path: account(w, to), Data: []byte(strconv.Itoa(y + sum)), Version: sy.Version},
		)
	}
}

func settleBank(w *worker) {
	var checks []any
	for i := range bankAccounts {
		_, stat, err := w.balance(i)
		if err != nil {
			return
		}
		checks = append(checks, &zk.CheckVersionRequest{Path: account(w, i), Version: stat.Version})
	}
	// As above.
	_, _ = w.Multi(checks...)
}

func account(w *worker, i int) string { return fmt.Sprintf("%s/%d", w.dir, i) }

func (w *worker) balance(i int) (int, *zk.Stat, error) {
	data, stat, err := w.Get(account(w, i))
	if err != nil {
		return 0, nil, err
	}
	v, err := strconv.Atoi(string(data))
	return v, stat, err
}
