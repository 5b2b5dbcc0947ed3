package backup

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/archive"
	"github.com/gozkd/gozkd/internal/history"
)

// The reason is given once, and both packages' errors are found.
func TestNotCovered(t *testing.T) {
	err := notCovered(fmt.Errorf("%w: it begins later", archive.ErrNotCovered))
	if !errors.Is(err, history.ErrNotCovered) || !errors.Is(err, archive.ErrNotCovered) || strings.Count(err.Error(), "does not have this moment") != 1 {
		t.Error(err)
	}
}
