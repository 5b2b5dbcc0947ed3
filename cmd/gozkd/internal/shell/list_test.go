package shell

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/cli"
	"github.com/gozkd/gozkd/zktest"
)

// stopAt calls stop when text is written.
type stopAt struct {
	lockedBuffer
	text string
	stop context.CancelFunc
}

func (w *stopAt) Write(p []byte) (int, error) {
	if strings.Contains(string(p), w.text) {
		w.stop()
	}
	return w.lockedBuffer.Write(p)
}

// TestListBelow_Streams checks that ls -R prints while it runs, and that a signal interrupts it.
func TestListBelow_Streams(t *testing.T) {
	at := zktest.Start(t).ConnectString()
	var script strings.Builder
	for i := range 300 {
		fmt.Fprintf(&script, "create /a%03d\ncreate /a%03d/b\n", i, i)
	}
	if got := runCLI(t, script.String(), nil, "-server", at); got.status != cli.OK {
		t.Fatal(got.err)
	}
	for _, line := range []string{"ls -R /", "find /", "export /"} {
		ctx, stop := context.WithCancel(t.Context())
		out, errs := &stopAt{text: "/", stop: stop}, &lockedBuffer{}
		status := Main(ctx, append([]string{"-server", at}, split(line)...), testEnv("", out, errs, nil))
		if status != cli.Failed || errs.String() != "Interrupted\n" {
			t.Errorf("%s: status %d, %q", line, status, errs)
		}
		if got := out.String(); got == "" || strings.Contains(got, "/a299/b") {
			t.Errorf("%s: %d bytes, wholly or not at all", line, len(got))
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	out, errs := &lockedBuffer{}, &lockedBuffer{}
	if status := Main(ctx, []string{"-server", at}, testEnv("", out, errs, nil)); status != cli.Failed {
		t.Errorf("a script: status %d", status)
	}
}

// TestListPages lists a name per line, in order, after a name if one is given, also as JSON.
func TestListPages(t *testing.T) {
	at := treeServer(t)
	if status, _, errs := onServer(t, at, "create /p\ncreate /p/b\ncreate /p/a\ncreate /p/c"); status != cli.OK {
		t.Fatal(errs)
	}
	for _, tc := range []struct{ line, want string }{
		{"ls -page /p", "a\nb\nc\n"},
		{"ls -page -after a /p", "b\nc\n"},
		{"ls -page -after c /p", ""},
	} {
		if status, out, errs := onServer(t, at, "", split(tc.line)...); status != cli.OK || out != tc.want {
			t.Errorf("%s: %d, %q, %s", tc.line, status, out, errs)
		}
	}
	if status, out, _ := onServer(t, at, "", "-output", "json", "ls", "-page", "/p"); status != cli.OK || out != "\"a\"\n\"b\"\n\"c\"\n" {
		t.Errorf("JSON: %d, %q", status, out)
	}
	for line, want := range map[string]string{
		"ls -page -s /p": "-page cannot be combined with -s, -w or -R",
		"ls -w -page /p": "-page cannot be combined with -s, -w or -R",
		"ls -R -page /p": "-page cannot be combined with -s, -w or -R",
		"ls -after a /p": "-after needs -page",
	} {
		if status, out, errs := onServer(t, at, "", split(line)...); status == cli.OK || out != "" || !strings.Contains(errs, want) {
			t.Errorf("%s: %d, %q, %s; want %q", line, status, out, errs, want)
		}
	}
	if status, _, errs := onServer(t, at, "", "ls", "-page", "/none"); status == cli.OK || !strings.Contains(errs, "/none") {
		t.Errorf("no znode: %d, %s", status, errs)
	}
}
