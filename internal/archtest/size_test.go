package archtest

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/gozkd/gozkd/internal/testkit/exhaustive"
)

// platforms has TestBinaryGrowth build for others too: go test ./internal/archtest -run
// BinaryGrowth -platforms linux/amd64,darwin/arm64 -v
var platforms = flag.String("platforms", "", "what to build for, as GOOS/GOARCH,...; by default this machine")

// maxGrowth is how many bytes a server may add to a program. log/slog, which Config.Slog links, is
// a part of them; so are budgets per tenant and what is said of a full state, which took 170,000,
// and pages of children, missed events and the stories of ended sessions, which took 300,000, and
// the pauses of refused clients and the errors that say what a port is for, which took 35,000, and
// a regular expression for names in certificates and why a reconfig is refused, which took 60,000.
// -trimpath makes the sizes independent of where the tree is.
const maxGrowth = 13_160_000

const (
	helloProgram = `package main

import (
	"context"
	"fmt"
)

func main() { fmt.Println(context.Background()) }
`
	embedProgram = `package main

import (
	"context"
	"fmt"

	"github.com/gozkd/gozkd/server"
)

func main() {
	s, err := server.New(server.Config{})
	if err == nil {
		err = s.Start(context.Background())
	}
	fmt.Println(err)
}
`
)

// TestBinaryGrowth compares a program that starts a server with one that does nothing.
func TestBinaryGrowth(t *testing.T) {
	if *platforms == "" {
		exhaustive.Only(t) // it builds the standard library without cgo
		*platforms = runtime.GOOS + "/" + runtime.GOARCH
	}
	load(t) // NB: opens every source file, so that a cached result of this test dies with any change of them
	for platform := range strings.SplitSeq(*platforms, ",") {
		for _, flags := range []string{"", "-s -w"} {
			hello, embed := binaryBytes(t, platform, flags, helloProgram), binaryBytes(t, platform, flags, embedProgram)
			line := fmt.Sprintf("| %s | %s | %.1f MB | %.1f MB | %.1f MB |", platform, flags, float64(hello)/1e6, float64(embed)/1e6, float64(embed-hello)/1e6)
			t.Log(line)
			if embed-hello > maxGrowth || embed-hello < 1_000_000 { // less: it is not linked
				t.Errorf("a server adds %d bytes, allowed are %d: %s", embed-hello, maxGrowth, line)
			}
		}
	}
}

// maxLockProgram is how many bytes a program that takes a lock may have.
const maxLockProgram = 5_000_000

const lockProgram = `package main

import (
	"context"

	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/lock"
)

func main() {
	c, err := recipes.Connect(context.Background(), []string{"127.0.0.1:2181"})
	if err == nil {
		err = lock.NewMutex(c, "/l", nil).With(context.Background(), func(context.Context) error { return nil })
	}
	panic(err)
}
`

// TestBinaryLock bounds a program that takes a lock. It uses no TLS and must not link crypto/tls.
func TestBinaryLock(t *testing.T) {
	exhaustive.Only(t)
	load(t) // as above
	if n := binaryBytes(t, runtime.GOOS+"/"+runtime.GOARCH, "-s -w", lockProgram); n > maxLockProgram {
		t.Errorf("a program that takes a lock has %d bytes, allowed are %d", n, maxLockProgram)
	}
}

// binaryBytes builds a program within this module and returns how large it is.
func binaryBytes(t *testing.T, platform, ldflags, text string) int64 {
	t.Helper()
	goos, goarch, _ := strings.Cut(platform, "/")
	dir := t.TempDir()
	program, binary := filepath.Join(dir, "main.go"), filepath.Join(dir, "main")
	if err := os.WriteFile(program, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags="+ldflags, "-o", binary, program)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "GOOS="+goos, "GOARCH="+goarch, "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build for %s: %v\n%s", platform, err, out)
	}
	info, err := os.Stat(binary)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}
