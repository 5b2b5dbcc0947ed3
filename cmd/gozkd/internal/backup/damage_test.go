package backup

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/gozkd/gozkd/internal/testkit/exhaustive"
	"github.com/gozkd/gozkd/server"
)

// A backup with a wrong byte, on any page, is refused or read as the same state. It never ends the
// program, and is never read as another state.
func TestReadSource_FlippedBytes(t *testing.T) {
	dir := t.TempDir()
	data, good := filepath.Join(dir, "data"), filepath.Join(dir, "good.db")
	s, stop := serve(t, server.Config{Dir: data, SnapCount: 20})
	fill(t, s, 60)
	stop()
	mustRun(t, Backup, "--from", data, good)
	want := mustRead(t, good)
	for _, file := range []string{good, checkpointIn(data)} { // written at once; with free pages
		want := want
		if file != good {
			want = mustRead(t, file)
		}
		whole, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		page := os.Getpagesize()
		rng := rand.New(rand.NewPCG(5, 6))
		refused, same := 0, 0
		try := func(at int, to byte) {
			t.Helper()
			wrong := append([]byte(nil), whole...)
			wrong[at] = to
			path := filepath.Join(dir, "wrong.db")
			if err := os.WriteFile(path, wrong, 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := readSource(path, "")
			switch {
			case err != nil:
				refused++
			case got.tree.Digest() != want.tree.Digest() || got.tree.LastZxid() != want.tree.LastZxid() || got.held.Index != want.held.Index ||
				got.held.Term != want.held.Term || got.tree.NumSessions() != want.tree.NumSessions() || got.tree.NumZnodes() != want.tree.NumZnodes():
				t.Errorf("byte %d of page %d from %#02x to %#02x: another state", at%page, at/page, whole[at], to)
			default:
				same++
			}
		}
		for first := 0; first < len(whole); first += page {
			for range exhaustive.Or(6, perPage) {
				at := first + rng.IntN(page)
				try(at, whole[at]^1<<rng.IntN(8))
			}
			for at := 0; at < 32; at += exhaustive.Or(3, 1) { // the header of the page, and its first elements
				try(first+at, whole[first+at]^1<<rng.IntN(8))
			}
		}
		for range 20 {
			cut := rng.IntN(len(whole))
			path := filepath.Join(dir, "cut.db")
			if err := os.WriteFile(path, whole[:cut], 0o600); err != nil {
				t.Fatal(err)
			}
			if got, err := readSource(path, ""); err == nil && got.tree.Digest() != want.tree.Digest() {
				t.Errorf("cut at %d: another state", cut)
			}
		}
		t.Logf("%s: %d pages, %d refused, %d the same", file, len(whole)/page, refused, same)
		if refused < same/4 || same == 0 {
			t.Errorf("%d refused, %d the same", refused, same)
		}
	}
}

// perPage is how many bytes of each page are damaged in turn, besides those of its header.
const perPage = 30
