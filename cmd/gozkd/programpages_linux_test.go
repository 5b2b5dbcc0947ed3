package main

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// Most pages of the program are not needed after the start.
func TestDropProgramPages(t *testing.T) {
	mapped := func() (kb int) {
		status, err := os.ReadFile("/proc/self/status")
		_, after, _ := strings.Cut(string(status), "RssFile:")
		if _, scanErr := fmt.Sscan(after, &kb); err != nil || scanErr != nil {
			t.Fatal(err, scanErr)
		}
		return kb
	}
	before := mapped()
	dropProgramPages()
	if after := mapped(); after > before*2/3 {
		t.Errorf("%d KB of files are mapped after, %d before", after, before)
	}
}
