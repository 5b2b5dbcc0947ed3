package archive

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/archive/store"
	"github.com/gozkd/gozkd/server/facts"
)

// A fence says that a standby was promoted, so that the ensemble archives no more. See
// docs/adr/0019-warm-standby.md.

func fenceFolder(ensemble uint64) string { return folder(ensemble) + "promoted/" }

// NewFence returns the name of a fence that no other promotion has.
func NewFence(ensemble uint64) string {
	return fmt.Sprintf("%s%013d-%s", fenceFolder(ensemble), time.Now().UnixMilli(), random())
}

// Fence writes a fence, or the same fence again, with a text for people. If there is another one,
// Fence removes its own, and returns an error (W5).
func Fence(ctx context.Context, s store.Store, name, text string) error {
	if err := s.Put(ctx, name, []byte(text)); err != nil {
		return err
	}
	dir := name[:strings.LastIndex(name, "/")+1]
	listed, err := s.List(ctx, dir, "")
	if err != nil {
		return err
	}
	i := slices.IndexFunc(listed, func(o store.Object) bool { return o.Name != name })
	if i < 0 {
		return nil
	}
	theirs, err := s.Get(ctx, listed[i].Name)
	return errors.Join(err, s.Delete(ctx, name), fmt.Errorf("%w (%s): %s\n"+
		"Two ensembles must not go on with one history. If that promotion was in vain, delete %s in %v",
		ErrOtherFence, strings.TrimSpace(string(theirs)), listed[i].Name, listed[i].Name, s))
}

// ErrOtherFence is returned by Fence if there is a fence of another promotion.
var ErrOtherFence = errors.New("another standby was promoted")

// errFenced means that a standby was promoted.
var errFenced = errors.New("a standby was promoted, so another ensemble goes on with this history; this one " +
	"archives no more, and what its clients write is lost: stop its servers, or, if the promotion was in vain, " +
	"delete the object")

// checkFence returns an error if a listing shows a fence.
func (s *Shipper) checkFence(c *catalog) error {
	if len(c.fences) == 0 {
		s.count(func(a *facts.ArchiveStats) { a.Fenced = "" })
		return nil
	}
	s.active = false
	s.dropBase()
	err := fmt.Errorf("%w %s", errFenced, c.fences[0])
	s.count(func(a *facts.ArchiveStats) { a.Fenced = err.Error() })
	return err
}
