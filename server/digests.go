package server

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/gozkd/gozkd/internal/vfs"
)

const (
	// digestEvery: a digest is kept of the state after each entry whose index is a multiple of
	// digestEvery.
	digestEvery = 16
	// digestCount is how many digests are kept, for members that are ahead or lag.
	digestCount = 1024
	// differTimes is how often in a row a member must differ before the leader says so to the
	// member, if no majority decides which state is right.
	differTimes = 3
)

// ErrDiverged means that the state of this server is not that of the others.
var ErrDiverged = errors.New("server: the state differs from that of the other servers")

// divergedFile marks a data directory whose state differs. No server starts with such a directory.
const divergedFile = "DIVERGED"

// digests holds the digests of this server's state after recent entries, and the last reports of
// other members about theirs.
type digests struct {
	mu      sync.Mutex
	recent  [digestCount]digest // at index/digestEvery
	last    digest
	differs map[uint64]opinion // on the leader: by member
}

// digest is the hash of the state after an entry.
type digest struct{ index, hash uint64 }

// opinion is the result of comparing a member's state by its reports.
type opinion struct {
	times int       // how often the states differed in a row; 0: they are equal
	at    time.Time // when the report came: the opinion of a silent member does not count
}

// note records the digest of the state after an entry. Apply calls it.
func (d *digests) note(index, hash uint64) {
	if index%digestEvery != 0 {
		return
	}
	d.mu.Lock()
	d.last = digest{index, hash}
	d.recent[index/digestEvery%digestCount] = d.last
	d.mu.Unlock()
}

func (d *digests) newest() digest {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.last
}

// verdict is the result of comparing a member's digest.
type verdict uint8

const (
	verdictNone  verdict = iota // equal, not comparable, or not clear yet
	verdictOther                // the other member's state is wrong
	verdictOwn                  // this server's state is wrong
)

// compare compares a member's digest. If more members differ from this server than agree with it,
// this server is wrong. Opinions from before since do not count.
func (d *digests) compare(from uint64, theirs digest, now, since time.Time) verdict {
	d.mu.Lock()
	defer d.mu.Unlock()
	ours := d.recent[theirs.index/digestEvery%digestCount]
	if theirs.index == 0 || ours.index != theirs.index {
		return verdictNone
	}
	if ours.hash == theirs.hash {
		d.differs[from] = opinion{0, now}
		return verdictNone
	}
	d.differs[from] = opinion{d.differs[from].times + 1, now}
	agree, differ := 1, 0
	for _, o := range d.differs {
		switch {
		case o.at.Before(since):
		case o.times > 0:
			differ++
		default:
			agree++
		}
	}
	switch {
	case differ > agree:
		return verdictOwn
	case agree > differ || d.differs[from].times >= differTimes:
		return verdictOther
	}
	return verdictNone
}

// forget discards all opinions. A new leader judges for itself.
func (d *digests) forget() {
	d.mu.Lock()
	d.differs = make(map[uint64]opinion)
	d.mu.Unlock()
}

// diverged stops this server for good: its answers may be wrong, and it must not take part in
// decisions.
func (s *Server) diverged(index uint64) {
	err := fmt.Errorf("%w since entry %d at the latest", ErrDiverged, index)
	if s.cfg.Dir != "" {
		path := filepath.Join(s.cfg.Dir, divergedFile)
		what := fmt.Sprintf("%v.\nMove this data directory away and start the server with an empty one: it fetches the state from the others.\n", err)
		writeErr := vfs.WriteFile(s.cfg.DirFS, path, []byte(what))
		if writeErr == nil {
			writeErr = s.cfg.DirFS.SyncDir(s.cfg.Dir) // else a power loss could remove it
		}
		err = errors.Join(err, writeErr)
	}
	s.fail(err)
	s.life.cancel() // set, because only a server that serves gets here; its owner may be slow to call Close
}

// checkDiverged refuses a data directory that was marked by diverged.
func (s *Server) checkDiverged() error {
	if s.cfg.Dir == "" {
		return nil
	}
	path := filepath.Join(s.cfg.Dir, divergedFile)
	switch exists, err := vfs.Exists(s.cfg.DirFS, path); {
	case err != nil: // the mark may be there
		return fmt.Errorf("server: look for the mark of a server that differs from the others: %w", err)
	case exists:
		return fmt.Errorf("%w, see %s", ErrDiverged, path)
	}
	return nil // no mark, or no directory yet
}
