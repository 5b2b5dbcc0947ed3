package server

import (
	"os"
	"testing"
)

// The runtime and other tests may open and close files between two counts, so the counts are
// compared to many files.
func TestCountDescriptors_AgreesWithTheList(t *testing.T) {
	const dir, files, others = "/proc/self/fd", 300, 100
	before, ok := countDescriptors(dir)
	if !ok {
		t.Fatal("not counted")
	}
	for range files {
		f, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
	}
	counted, _ := countDescriptors(dir)
	listed, ok := listDescriptors(dir)
	if !ok || counted-before < files-others || counted-listed > others || listed-counted > others {
		t.Errorf("%d descriptors, after %d more files %d, listed %d", before, files, counted, listed)
	}
}
