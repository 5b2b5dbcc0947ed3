package main

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/must"
)

// The image has what the Dockerfile says, and a word of the Dockerfile that would be left out ends
// the release.
func TestReadDockerfile(t *testing.T) {
	text, err := os.ReadFile("../../deploy/Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	c, replaced := readDockerfile(string(text))
	if c.User != "1000:1000" || len(c.Volumes) != 3 || len(c.ExposedPorts) != 5 || c.StopSignal != "SIGTERM" || c.Healthcheck.Interval != 10*time.Second ||
		!slices.Equal(c.Healthcheck.Test, []string{"CMD", "/bin/gozkd", "ruok"}) || !slices.Contains(c.Env, "ZOO_DATA_DIR=/data") ||
		!slices.Equal(append(c.Entrypoint, c.Cmd...), []string{"/bin/gozkd", "zkServer.sh", "start-foreground"}) || !slices.Contains(replaced, "zkCli") {
		t.Errorf("%+v, %q", c, replaced)
	}
	for _, word := range []string{"WORKDIR /data", "HEALTHCHECK --retries=3s CMD [\"a\"]"} {
		if err := must.Try(func() { readDockerfile(string(text) + word + "\n") }); err == nil || !strings.Contains(err.Error(), "not known") {
			t.Errorf("%s: %v", word, err)
		}
	}
}

func TestCommands(t *testing.T) {
	texts := map[string]string{
		"":      "usage: gozkd\n\ncommands:\n  serve          run\n                 more of it\n  start-foreground, version\n                 as zkServer.sh\n\nflags of serve:\n  --not-this\n",
		"serve": "flags:\n  --id N                 number\n  --cert FILE, --key FILE    PEM files\n  -o KEY=VALUE           set; also -DKEY=VALUE\n",
	}
	all := commands(func(args ...string) string { return texts[strings.Join(args, " ")] })
	if names(all) != "serve start-foreground version" || strings.Join(all[0].flags, " ") != "--id --cert --key -o" {
		t.Errorf("%+v", all)
	}
}

func TestLinked_RefusesLicences(t *testing.T) {
	for text, want := range map[string]string{"": "no licence found", "GNU GENERAL PUBLIC LICENSE Version 3\n\nhttps://www.gnu.org/licenses/gpl-3.0.html": "no licence found"} {
		dir := t.TempDir()
		if text != "" {
			write(dir+"/LICENSE", []byte(text))
		}
		l := linked{module: "example.com/a", version: "v1.0.0"}
		if err := must.Try(func() { l.read(dir) }); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}
