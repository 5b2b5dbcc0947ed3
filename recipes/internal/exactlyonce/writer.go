// Package exactlyonce is how recipes write exactly once: a multi whose answer is lost says afterwards whether it was applied.
//
// With the caller's operations, each multi writes a number of its own into a marker, an ephemeral znode of the writer's. If the answer is
// lost, the marker tells: either both were written or neither was.
//
// Invariants:
//   - O1 a write that is reported as done was applied, once;
//   - O2 one that is reported as failed was not applied and will not be, unless the error is recipes.ErrOutcomeUnknown;
//   - O3 which it only is if ctx ended, the session was lost, or the Client was closed or had enough, while the answer was out;
//   - O4 of a closed writer nothing is left.
package exactlyonce

import (
	"context"
	"crypto/rand"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/znodepath"
)

// markerPrefix begins the names of markers.
const markerPrefix = "once-"

// IsMarker reports whether a znode of that name is a writer's marker.
func IsMarker(name string) bool { return strings.HasPrefix(name, markerPrefix) }

// Writer writes one multi at a time. Safe for concurrent use.
type Writer struct {
	client *recipes.Client
	dir    string
	lock   chan struct{} // holds one token while somebody writes, who alone may use what follows

	session    *recipes.Session // of marker
	marker     string           // "" if there is none
	lastNumber int64            // the last number
}

// New returns a Writer whose marker is a child of dir. It asks the server nothing.
func New(c *recipes.Client, dir string) *Writer {
	return &Writer{client: c, dir: dir, lock: make(chan struct{}, 1)}
}

// Result is what came of a write.
type Result struct {
	Zxid    int64              // of the write
	Session *recipes.Session   // in which it was done; nil if that was a later one than it was meant for: it was late, and what it made is there now
	Marker  string             // the path of the marker, which lives as long as that session, if the Writer is not closed; "" without Session
	Ops     []zk.MultiResponse // those of ops; nil if the answer was lost and the marker told
}

// Do carries out all ops or none, and returns the zxid of that. dir must be there when they are done. An error of an op is that of
// recipes.Client.Multi.
func (w *Writer) Do(ctx context.Context, ops ...any) (zxid int64, err error) {
	r, err := w.Write(ctx, ops...)
	return r.Zxid, err
}

// mostLost is how often a write is tried whose answers are lost: what is too large for the server breaks each connection.
const mostLost = 5

// Write is Do that says more. When it fails because of an op, Ops say because of which.
func (w *Writer) Write(ctx context.Context, ops ...any) (Result, error) {
	if err := w.acquire(ctx); err != nil {
		return Result{}, err
	}
	defer w.release()
	for lost := 0; ; {
		s, err := w.client.AwaitSession(ctx)
		if err != nil {
			return Result{}, err
		}
		if w.session != s {
			w.dropMarker() // it went with its session, but for a wrapped connection's
			w.session = s
		}
		r, again, err := w.tryOnce(ctx, ops)
		if errors.Is(err, recipes.ErrOutcomeUnknown) && again {
			if lost++; lost == mostLost {
				return Result{}, &recipes.Error{Op: "multi", Path: w.dir, Err: zk.ErrConnectionClosed}
			}
		}
		if !again {
			return r, err
		}
	}
}

// Close deletes the marker, if there is one. What can't be done before ctx ends goes on in the background, until the Client is closed; the
// error, with Unknown set, says why it was not waited for. A later Do makes another.
func (w *Writer) Close(ctx context.Context) error {
	if err := w.acquire(ctx); err != nil {
		return err
	}
	defer w.release()
	marker := w.marker
	if w.marker = ""; marker == "" {
		return nil
	}
	err := w.client.Delete(ctx, marker, -1)
	var e *recipes.Error
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return nil
	case errors.As(err, &e) && !e.Refused():
		e.Unknown = w.deleteLater(marker) == nil || e.Unknown
	}
	return err
}

func (w *Writer) acquire(ctx context.Context) error {
	select {
	case w.lock <- struct{}{}:
		return nil
	case <-ctx.Done():
		return &recipes.Error{Op: "multi", Path: w.dir, Err: context.Cause(ctx)}
	}
}

func (w *Writer) release() { <-w.lock }

// try is one try. again means that nothing was applied, and that another try may succeed.
func (w *Writer) tryOnce(ctx context.Context, ops []any) (r Result, again bool, err error) {
	in, cancel := w.session.Within(ctx)
	defer cancel()
	w.lastNumber++
	number := []byte(strconv.FormatInt(w.lastNumber, 10))
	marker, all := w.marker, append([]any(nil), ops...)
	if marker == "" {
		marker = znodepath.Join(w.dir, markerPrefix+rand.Text())
		all = append(all, &zk.CreateRequest{Path: marker, Flags: zk.FlagEphemeral})
	}
	// A set, also of a new one: its Stat tells the zxid.
	all = append(all, &zk.SetDataRequest{Path: marker, Data: number, Version: -1})
	results, err := w.client.Multi(in, all...)
	if len(results) == len(all) {
		r.Ops = results[:len(ops)]
	}
	switch {
	case err == nil:
		w.marker = marker
		return w.result(results[len(all)-1].Stat, r.Ops), false, nil
	case errors.Is(err, recipes.ErrOutcomeUnknown):
		return w.resolve(ctx, in, marker, string(number), err)
	case w.marker != "" && failedAt(results) == len(ops): // somebody has deleted the marker
		w.marker = ""
		return r, true, nil
	}
	return r, in.Err() != nil && ctx.Err() == nil, err
}

// done is the result of a write that gave the marker this Stat, and ops those results.
func (w *Writer) result(stat *zk.Stat, ops []zk.MultiResponse) Result {
	if stat.EphemeralOwner != w.session.ID() { // go-zookeeper sends what waited to be sent when a session ended in the next one
		w.dropMarker()
		return Result{Zxid: stat.Mzxid, Ops: ops}
	}
	return Result{stat.Mzxid, w.session, w.marker, ops}
}

// look finds out whether a multi was applied whose answer is not known. in is the session's.
func (w *Writer) resolve(ctx, in context.Context, marker, number string, unknown error) (r Result, again bool, err error) {
	before := w.marker
	w.marker = marker
	// The multi was sent before the sync, and where that was over another connection, the leader takes nothing from that any more: so what
	// is not there when the sync is answered never will be.
	if err = w.client.Sync(in, marker); err == nil {
		var data []byte
		var stat *zk.Stat
		data, stat, err = w.client.Get(in, marker)
		if errors.Is(err, zk.ErrNoNode) && before == "" {
			err = w.sameSession(in)
		}
		switch {
		case err == nil && string(data) == number:
			return w.result(stat, nil), false, nil
		case err == nil:
			return Result{}, true, unknown
		}
	}
	if before == "" {
		w.dropMarker()
	} // else others may rely on it in this session; what is written next comes after the multi, and says if it is gone
	if ctx.Err() == nil {
		unknown = errors.Join(unknown, err)
	}
	return Result{}, false, unknown
}

// sameSession makes the marker that was not there, and fails if that was done in another session than that of in: then the marker may have
// been there, and gone with its session, which the Client does not know yet.
func (w *Writer) sameSession(in context.Context) error {
	if _, err := w.client.Create(in, w.marker, nil, recipes.CreateOptions{Mode: recipes.Ephemeral}); err != nil {
		return err
	}
	stat, err := w.client.Exists(in, w.marker)
	if err == nil && (stat == nil || stat.EphemeralOwner != w.session.ID()) {
		err = recipes.ErrSessionLost
	}
	return err
}

// forget has the marker deleted in the background.
func (w *Writer) dropMarker() {
	if w.marker == "" {
		return
	}
	_ = w.deleteLater(w.marker) // else the Client is closed, and with it goes what it made
	w.marker = ""
}

// Deleting goes on for as long as the connection is lost; the pause between two tries grows from the first to the last.
const (
	firstPause = 100 * time.Millisecond
	lastPause  = 5 * time.Second
)

// deleteLater deletes a marker in the background, and goes on until it is done, the server refuses, or the Client is closed. Then the error is
// ErrClosed if nothing was begun.
//
// It deletes the marker of any session, unlike recipes.Client.DeleteGuaranteed: go-zookeeper sends what waited to be sent when a session ended
// in the next one, and so it makes the marker there. The sync waits until that has happened. Nobody else has the marker's name, which is random.
func (w *Writer) deleteLater(marker string) error {
	return w.client.Background(context.Background(), func(ctx context.Context) {
		for pause := firstPause; ; pause = min(2*pause, lastPause) {
			err := w.client.Sync(ctx, marker)
			if err == nil {
				err = w.client.Delete(ctx, marker, -1)
			}
			var e *recipes.Error
			if err == nil || errors.As(err, &e) && e.Refused() {
				return
			}
			select {
			case <-time.After(pause):
			case <-ctx.Done():
				return
			}
		}
	})
}

// failedAt returns the index of the op that failed: those before it have no error.
func failedAt(results []zk.MultiResponse) int {
	for i, r := range results {
		if r.Error != nil {
			return i
		}
	}
	return -1
}
