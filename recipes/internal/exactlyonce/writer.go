// Package exactlyonce writes exactly once: after a lost answer, a Writer can find out whether its
// multi was applied.
//
// Besides the caller's operations, each multi writes its own number into a marker, an ephemeral
// znode of the Writer. After a lost answer the marker shows whether the multi was applied, because
// a multi is applied completely or not at all.
//
// Invariants:
//   - O1 A write that is reported as done was applied once.
//   - O2 A write that is reported as failed was not applied and will not be, unless the error is
//     recipes.ErrOutcomeUnknown.
//   - O3 The error is recipes.ErrOutcomeUnknown only if, before the answer, ctx ended, the session
//     was lost, the Client was closed, or its RetryPolicy stopped.
//   - O4 A closed Writer leaves no znode.
package exactlyonce

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/internal/backoff"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/calls"
	"github.com/gozkd/gozkd/recipes/internal/znodepath"
)

const markerPrefix = "once-"

// Writer sends one multi at a time. Safe for concurrent use.
type Writer struct {
	client *recipes.Client
	dir    string
	turn   chan struct{} // capacity 1: holds a value while no goroutine uses the fields below

	session    *recipes.Session // the marker's
	marker     string           // path; "" if there is none
	lastNumber int64            // the number of the latest multi
}

// New returns a Writer whose marker is a child of dir. No request is sent.
func New(c *recipes.Client, dir string) *Writer {
	w := &Writer{client: c, dir: dir, turn: make(chan struct{}, 1)}
	w.release()
	return w
}

// Result is the result of a write.
type Result struct {
	Zxid int64 // of the write
	// Session is the session in which the write was applied; nil if that was a later session than
	// intended, because the request waited while the session ended. Ephemerals that the write
	// created then belong to that later session.
	Session *recipes.Session
	// Marker is the path of the marker, which exists as long as Session unless the Writer is
	// closed; "" if Session is nil.
	Marker string
	Ops    []client.Result // results of the caller's ops; nil if the answer was lost
}

// Write applies all ops or none. dir must exist. Errors of ops are those of recipes.Client.Multi;
// if an op fails, Result.Ops says which.
func (w *Writer) Write(ctx context.Context, ops ...client.Op) (Result, error) {
	if err := w.acquire(ctx); err != nil {
		return Result{}, err
	}
	defer w.release()
	for {
		s, err := w.client.AwaitSession(ctx)
		if err != nil {
			return Result{}, err
		}
		if w.session != s {
			w.dropMarker() // deleted with its session, except on a wrapped connection
			w.session = s
		}
		r, again, err := w.tryOnce(ctx, ops)
		switch {
		case !again:
			return r, err
		case errors.Is(err, recipes.ErrHungUp):
			return Result{}, &recipes.Error{Op: "multi", Path: w.dir, Err: recipes.ErrHungUp}
		}
	}
}

// Close deletes the marker. If ctx ends first, that continues in the background until the Client is
// closed; the error then has Unknown set and says why Close did not wait. A later Write creates a
// new marker.
func (w *Writer) Close(ctx context.Context) error {
	if err := w.acquire(ctx); err != nil {
		return err
	}
	defer w.release()
	marker := w.marker
	if w.marker = ""; marker == "" {
		return nil
	}
	err := w.client.Idempotent().Delete(ctx, marker, -1)
	var e *recipes.Error
	switch {
	case errors.Is(err, proto.ErrNoNode):
		return nil
	case errors.As(err, &e) && !recipes.Refused(err):
		e.Unknown = DeleteLater(context.Background(), w.client, marker) == nil || e.Unknown
	}
	return err
}

func (w *Writer) acquire(ctx context.Context) error { return calls.Await(ctx, "multi", w.dir, w.turn) }

func (w *Writer) release() { w.turn <- struct{}{} }

// tryOnce makes an attempt. again means that nothing was applied and another attempt may succeed.
func (w *Writer) tryOnce(ctx context.Context, ops []client.Op) (r Result, again bool, err error) {
	in, cancel := w.session.Within(ctx)
	defer cancel()
	w.lastNumber++
	number := []byte(strconv.FormatInt(w.lastNumber, 10))
	marker, all := w.marker, append([]client.Op(nil), ops...)
	if marker == "" {
		marker = znodepath.Join(w.dir, markerPrefix+rand.Text())
		all = append(all, client.CreateOp(marker, nil, client.CreateOptions{Ephemeral: true}))
	}
	// Set even a new marker: only a Set returns a Stat with the zxid.
	all = append(all, client.SetOp(marker, number, -1))
	results, err := w.client.Multi(in, all...)
	if len(results) == len(all) {
		r.Ops = results[:len(ops)]
	}
	switch {
	case err == nil:
		w.marker = marker
		return w.result(&results[len(all)-1].Stat, r.Ops), false, nil
	case errors.Is(err, recipes.ErrOutcomeUnknown):
		return w.resolve(ctx, in, marker, string(number), err)
	// somebody has deleted the marker
	case w.marker != "" && len(results) == len(all) && FailedAt(results) == len(ops):
		w.marker = ""
		return r, true, nil
	}
	return r, in.Err() != nil && ctx.Err() == nil, err
}

// result returns the Result of a write that left the marker with stat.
func (w *Writer) result(stat *proto.Stat, ops []client.Result) Result {
	// sent in a later session: go-zookeeper keeps unsent requests when a session ends
	if int64(stat.EphemeralOwner) != w.session.ID() {
		w.dropMarker()
		return Result{Zxid: int64(stat.Mzxid), Ops: ops}
	}
	return Result{int64(stat.Mzxid), w.session, w.marker, ops}
}

// resolve finds out whether a multi with a lost answer was applied. in ends with the session.
func (w *Writer) resolve(ctx, in context.Context, marker, number string, unknown error) (r Result, again bool, err error) {
	before := w.marker
	w.marker = marker
	// The multi was sent before the sync. If that was over an earlier connection, the leader
	// accepts nothing more from the earlier connection. So a multi that has not been applied when
	// the sync is answered never will be.
	if err = w.client.Sync(in, marker); err == nil {
		var data []byte
		var stat *proto.Stat
		data, stat, err = w.client.Get(in, marker)
		if errors.Is(err, proto.ErrNoNode) && before == "" {
			err = w.sameSession(in)
		}
		switch {
		case err == nil && string(data) == number:
			return w.result(stat, nil), false, nil
		case err == nil:
			return Result{}, true, unknown
		}
	}
	switch {
	case before == "": // if dir is missing, err says so: then nothing was applied
		w.dropMarker()
	case errors.Is(err, proto.ErrNoNode): // not an error of the caller's ops
		err = fmt.Errorf("somebody has deleted %s, which would say whether the multi was applied", marker)
	} // other holders may rely on a marker that existed; if it is gone, the next write notices
	if ctx.Err() == nil {
		unknown = errors.Join(unknown, err)
	}
	return Result{}, false, unknown
}

// sameSession creates the marker that was missing, and fails if the marker then belongs to another
// session: the marker may have existed before and been deleted with its session, whose end the
// Client has not noticed yet.
func (w *Writer) sameSession(in context.Context) error {
	if _, err := w.client.Idempotent().Create(in, w.marker, nil, recipes.CreateOptions{Ephemeral: true}); err != nil {
		return err
	}
	stat, err := w.client.Exists(in, w.marker)
	if err == nil && (stat == nil || int64(stat.EphemeralOwner) != w.session.ID()) {
		err = recipes.ErrSessionLost
	}
	return err
}

func (w *Writer) dropMarker() {
	if w.marker == "" {
		return
	}
	// fails only if the Client is closed, which deletes its ephemerals
	_ = DeleteLater(context.Background(), w.client, w.marker)
	w.marker = ""
}

// DeleteLater deletes an ephemeral in the background until it is gone, the server refuses, or the
// Client is closed. The error is recipes.ErrClosed if the Client is closed already.
//
// Unlike recipes.Client.DeleteGuaranteed, DeleteLater deletes the ephemeral of any session: the
// request that creates it may be sent in the next session. The sync waits until that has happened.
// The name must be random, so that nobody else uses it.
func DeleteLater(ctx context.Context, c *recipes.Client, path string) error {
	return c.Background(ctx, func(ctx context.Context) {
		backoff.Retry(ctx, func() bool {
			err := c.Sync(ctx, path)
			if err == nil {
				err = c.Idempotent().Delete(ctx, path, -1)
			}
			return err == nil || recipes.Refused(err) && !errors.Is(err, recipes.ErrHungUp)
		})
	})
}

// FailedAt returns the index of the operation that made a multi fail, or len(results) if none did.
func FailedAt(results []client.Result) int {
	for i, r := range results {
		if r.Err != nil {
			return i
		}
	}
	return len(results)
}
