package archive

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"time"

	"github.com/gozkd/gozkd/server/facts"
)

// Verification is the result of a verification. All of it is in the name of its record, so that
// members learn it from a listing.
type Verification struct {
	Begun time.Time
	Last  uint64 // index of the last entry in the archive
	Sound bool
}

func (v Verification) in(ensemble uint64) string {
	result := map[bool]string{true: "sound", false: "failed"}[v.Sound]
	return fmt.Sprintf("%s%013d-%020d-%s", verifiedFolder(ensemble), v.Begun.UnixMilli(), v.Last, result)
}

func verifiedFolder(ensemble uint64) string { return folder(ensemble) + "verified/" }

// parseVerification reads the last element of a name.
func parseVerification(s string) (v Verification, ok bool) {
	var ms int64
	var result string
	_, _ = fmt.Sscanf(s, "%d-%d-%s", &ms, &v.Last, &result) // the name tells
	v.Begun, v.Sound = time.UnixMilli(ms), result == "sound"
	return v, path.Base(v.in(0)) == s
}

// Record writes the record of a verification with a report, and deletes earlier records (A7).
func (a *Archive) Record(ctx context.Context, v Verification, report []byte) error {
	name := v.in(a.catalog.ensemble)
	if err := a.store.Put(ctx, name, report); err != nil {
		return err
	}
	listed, err := a.store.List(ctx, verifiedFolder(a.catalog.ensemble), "")
	if err != nil {
		return err
	}
	for _, o := range listed {
		if o.Name < name {
			err = errors.Join(err, a.store.Delete(ctx, o.Name))
		}
	}
	return err
}

// lookForVerification reads the result of the last verification, and fences, from a listing.
func (s *Shipper) lookForVerification(ctx context.Context) error {
	if s.ensemble == 0 {
		return nil
	}
	c, err := s.catalog(ctx, fenceFolder(s.ensemble)) // it sorts before the records
	if err != nil {
		return err
	}
	v := cmp.Or(c.verified, &Verification{Sound: true})
	s.count(func(a *facts.ArchiveStats) { a.Verified, a.VerifyFailed = v.Begun, !v.Sound })
	return s.checkFence(c)
}
