package backup

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/archive"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/archive/store"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/replica"
	"github.com/gozkd/gozkd/consensus"
	"github.com/gozkd/gozkd/internal/backoff"
	"github.com/gozkd/gozkd/internal/history"
	"github.com/gozkd/gozkd/internal/vfs"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server/facts"
)

const (
	// StandbyID is the member id of every standby. See docs/adr/0019-warm-standby.md.
	StandbyID = 254
	// standbyFolder is the data directory of a standby, in the directory of the ensemble to found.
	standbyFolder = "standby"
	// cutPatience is for how long a standby must find no continuation of its history before it
	// begins anew: objects may be listed late.
	cutPatience = time.Minute
	// wholeRounds is after how many intervals a standby lists the whole archive.
	wholeRounds = 20
	// maxNoted bounds the digests that a standby keeps for bases that may come.
	maxNoted = 10_000
)

// ErrAnew means that a standby must be prepared once more.
var ErrAnew = errors.New("the archive does not continue from here: the standby begins anew with the newest base")

// Standby follows an archive into a data directory, and feeds a server with it.
type Standby struct {
	Store    store.Store
	URL      string // of Store, for promote
	Ensemble string // in hexadecimal digits; empty: the only one, or that of the directory
	Into     string // the directory of the ensemble that promote would found
	Interval time.Duration
	Logger   hclog.Logger

	at    archive.Place
	anew  bool // Run has ended with ErrAnew
	noted map[archive.Place]digestAt
	said  []string // the fences and the newer ensembles that the log names

	lastGood, entryTime atomic.Int64 // Unix milliseconds
	verified, errs      atomic.Int64
}

// Fed is a server that follows: server.Backups.
type Fed interface {
	LogPosition() facts.LogPosition
	Follow(ctx context.Context, entries []consensus.LogEntry) error
}

// Dir returns the data directory.
func (s *Standby) Dir() string { return filepath.Join(s.Into, standbyFolder) }

// Stats returns the figures for the metrics.
func (s *Standby) Stats() facts.StandbyStats {
	stats := facts.StandbyStats{Verified: s.verified.Load(), Errors: s.errs.Load()}
	stats.Lag = time.Since(time.UnixMilli(s.lastGood.Load()))
	if ms := s.entryTime.Load(); ms > 0 {
		stats.Time = time.UnixMilli(ms)
	}
	return stats
}

// Prepare makes the data directory from the newest state in the archive, unless there is one of the
// same ensemble.
func (s *Standby) Prepare(ctx context.Context) error {
	if err := CheckNotPromoted(s.Into); err != nil {
		return err
	}
	s.lastGood.CompareAndSwap(0, time.Now().UnixMilli())
	at, err := readPlace(s.Dir())
	if err := errors.Join(checkInto(s.Into, err == nil), checkFolder(s.Dir())); err != nil {
		return err
	}
	if s.Ensemble == "" && err == nil {
		s.Ensemble = fmt.Sprintf("%016x", at.Ensemble)
	}
	if err == nil && s.Ensemble == fmt.Sprintf("%016x", at.Ensemble) && !s.anew {
		s.set(at)
		return s.writeSource()
	}
	a, err := archive.Open(ctx, s.Store, s.Ensemble)
	if err != nil {
		return err
	}
	s.Ensemble = fmt.Sprintf("%016x", a.Ensemble)
	state, span, err := stateAt(ctx, a, history.Moment{}, math.MaxInt64)
	if err == nil {
		err = state.tree.Check()
	}
	if err != nil {
		return err
	}
	if err := s.empty(); err != nil {
		return err
	}
	begin := consensus.Foundation{ID: StandbyID, Dir: s.Dir()}
	if err := state.held.FollowEnsemble(begin, state.tree.CaptureAll()); err != nil {
		return err
	}
	s.anew = false
	s.Logger.Info("the standby begins; what is not archived yet would be lost if the ensemble were",
		"archive", a.String(), "index", span.Last, "zxid", state.tree.LastZxid().String())
	return s.moveTo(a.EndOf(span))
}

// empty removes the state. The fence of the same ensemble stays (W6). The source is written before
// anything else, so that the folder is known to be a standby's.
func (s *Standby) empty() error {
	if err := (vfs.OS{}).MkdirAll(s.Dir()); err != nil {
		return err
	}
	if err := clearFolder(s.Dir()); err != nil {
		return err
	}
	if !strings.HasPrefix(s.ownFence(), s.Ensemble+"/") {
		if err := os.RemoveAll(filepath.Join(s.Dir(), "fence")); err != nil {
			return err
		}
	}
	return s.writeSource()
}

// lasting are the files of a standby's folder that are no part of its state.
var lasting = []string{"LOCK", "source", "fence", "logs"}

// clearFolder removes the state from the folder of a standby, unless a standby runs with it. The
// place is removed first, because it must never be without the state.
func clearFolder(dir string) error {
	lock, err := vfs.OS{}.Lock(filepath.Join(dir, "LOCK"))
	if err != nil {
		return fmt.Errorf("%w\nStop the other gozkd standby first", err)
	}
	defer lock.Close()
	if err := os.RemoveAll(placeIn(dir)); err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if !slices.Contains(lasting, e.Name()) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
		}
	}
	return err
}

// ownFence returns the name of the fence of this standby, if its promotion was interrupted.
func (s *Standby) ownFence() string {
	name, _ := os.ReadFile(filepath.Join(s.Dir(), "fence"))
	return string(name)
}

// writeSource notes which archive promote must fence.
func (s *Standby) writeSource() error {
	return vfs.WriteFile(vfs.OS{}, filepath.Join(s.Dir(), "source"), []byte(s.URL+"\n"))
}

// checkInto refuses a directory in which something else is than a standby: promote would refuse it.
// begun: the standby has a state, and promote may have been interrupted.
func checkInto(dir string, begun bool) error {
	besides := []string{standbyFolder}
	if begun {
		besides = append(besides, leftovers...)
	}
	return CheckEmpty(dir, besides...)
}

// checkFolder refuses a folder with files that no standby has begun.
func checkFolder(dir string) error {
	source, err := os.ReadFile(filepath.Join(dir, "source"))
	if url := strings.TrimSpace(string(source)); err == nil && (url == "" || store.IsURL(url)) {
		return nil
	}
	return CheckEmpty(dir, "LOCK", "fence", "logs") // the end of clearing
}

// Run feeds a server until ctx ends. digest returns the last zxid of the server and its digest. The
// error is ErrAnew, ctx's, that of the server, or that the state differs from the archive's.
func (s *Standby) Run(ctx context.Context, to Fed, digest func() (int64, uint64)) error {
	s.noted = make(map[archive.Place]digestAt)
	var cutSince time.Time
	failing := false
	for round := 0; ; round++ {
		if to.LogPosition().Applied > 0 { // the data is open
			err := s.follow(ctx, to, digest, round%wholeRounds == 0 || failing)
			switch {
			case ctx.Err() != nil:
				return ctx.Err()
			case err == nil:
				s.lastGood.Store(time.Now().UnixMilli())
				cutSince = time.Time{}
			case errors.Is(err, archive.ErrCut) && cutSince.IsZero():
				cutSince = time.Now()
			case errors.Is(err, archive.ErrCut) && time.Since(cutSince) > cutPatience:
				s.anew = true
				return ErrAnew
			case errors.Is(err, errDiverged):
				return err
			}
			if err != nil {
				s.errs.Add(1)
			}
			if (err != nil) != failing {
				failing = err != nil
				s.Logger.Warn("following the archive", "works", !failing, "archive", s.Store.String(), "error", err)
			}
		} else {
			round--
		}
		if !backoff.Sleep(ctx, s.Interval) {
			return ctx.Err()
		}
	}
}

// errDiverged means that a base of the archive has another digest than the standby.
var errDiverged = errors.New("the state of the standby differs from a base of the archive")

// follow applies the entries that are in the archive now. whole says whether to list all objects.
func (s *Standby) follow(ctx context.Context, to Fed, digest func() (int64, uint64), whole bool) error {
	a, span, ok, err := archive.Since(ctx, s.Store, s.at)
	if err == nil && (whole || !ok) {
		if a, err = archive.Open(ctx, s.Store, s.Ensemble); err == nil {
			span, err = a.Continue(ctx, s.at)
		}
	}
	if err != nil {
		return err
	}
	for piece, err := range a.Objects(ctx, span, s.at.Index) {
		if err != nil {
			return err
		}
		if to.LogPosition().Applied+1 < piece.Entries[0].Index {
			return fmt.Errorf("%w: its data are older than its place", archive.ErrCut)
		}
		if err := to.Follow(ctx, piece.Entries); err != nil {
			return err
		}
		if len(s.noted) == maxNoted {
			clear(s.noted)
		}
		zxid, sum := digest()
		s.noted[piece.End] = digestAt{proto.Zxid(zxid), sum}
		if err := s.moveTo(piece.End); err != nil {
			return err
		}
	}
	if !whole {
		return nil
	}
	s.warn(a)
	return s.compare(ctx, a)
}

// warn logs, once each, why nothing more may come: fences, and newer ensembles in the archive.
func (s *Standby) warn(a *archive.Archive) {
	for _, name := range slices.Concat(a.Fences, a.Newer) {
		switch {
		case slices.Contains(s.said, name):
			continue
		case name == s.ownFence():
			s.Logger.Error("the promotion of this standby was interrupted: run gozkd standby promote again",
				"directory", s.Into, "fence", name)
		case slices.Contains(a.Newer, name):
			s.Logger.Warn("the archive has later writes of another ensemble: if it continues the one that this "+
				"standby follows, after a restore or a promotion, start gozkd standby with --ensemble-id and its number",
				"follows", s.Ensemble, "other", name)
		default:
			s.Logger.Error("another standby was promoted, so this ensemble archives no more, and this standby "+
				"shows the past: follow the new ensemble, or, if the promotion was in vain, delete the fence",
				"archive", a.String(), "fence", name)
		}
		s.said = append(s.said, name)
	}
}

// compare compares the digests of bases with those of the standby, at the places that it passed
// (W3).
func (s *Standby) compare(ctx context.Context, a *archive.Archive) error {
	for at, own := range s.noted {
		base, ok := a.BaseAt(at)
		if !ok {
			continue
		}
		delete(s.noted, at)
		var r replica.Digest
		if _, err := a.ReadBase(ctx, base, &r); err != nil {
			return err
		}
		if s.verified.Add(1); r.Zxid == own.zxid && r.Digest == own.digest {
			continue
		}
		err := fmt.Errorf("%w: after entry %d it has zxid %v and digest %#x, the base %v and %#x; "+
			"verify the archive with gozkd verify, then empty %s",
			errDiverged, at.Index, own.zxid, own.digest, r.Zxid, r.Digest, s.Dir())
		mark := filepath.Join(s.Dir(), "DIVERGED")
		return errors.Join(err, vfs.WriteFile(vfs.OS{}, mark, []byte(err.Error()+"\n")), vfs.OS{}.SyncDir(s.Dir()))
	}
	return nil
}

// moveTo notes that everything up to a place is applied.
func (s *Standby) moveTo(at archive.Place) error {
	s.set(at)
	path := placeIn(s.Dir())
	if err := vfs.WriteFile(vfs.OS{}, path+".new", []byte(at.String()+"\n")); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

func (s *Standby) set(at archive.Place) {
	s.at = at
	if !at.Time.IsZero() {
		s.entryTime.Store(at.Time.UnixMilli())
	}
}

func placeIn(dir string) string { return filepath.Join(dir, "place") }

// readPlace reads the place of the state in a standby's data directory. It is never after the
// state.
func readPlace(dir string) (archive.Place, error) {
	b, err := os.ReadFile(placeIn(dir))
	if err != nil {
		return archive.Place{}, err
	}
	return archive.ParsePlace(strings.TrimSpace(string(b)))
}

// CheckNotPromoted refuses a directory that has the data of a server.
func CheckNotPromoted(dir string) error {
	if _, err := os.Lstat(checkpointIn(dir)); err == nil {
		return fmt.Errorf("%s has the data of a server: if it is a standby that was promoted, start it with "+
			"gozkd serve; otherwise choose another directory", dir)
	}
	return nil
}

// CheckServable refuses to serve from a directory that is still a standby: the server would begin
// with an empty tree. It finishes a promotion that was interrupted before its last step.
func CheckServable(dir string) error {
	if CheckNotPromoted(dir) != nil {
		_, err := finishPromotion(dir)
		return err
	}
	if _, err := os.Lstat(placeIn(filepath.Join(dir, standbyFolder))); err != nil {
		return nil
	}
	return fmt.Errorf("%s is a standby: run gozkd standby promote %s first", dir, dir)
}
