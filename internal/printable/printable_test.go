package printable

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/gozkd/gozkd/internal/testkit/watchdog"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { watchdog.Watch(m).Run() }

// TestQuoted compares with encoding/json: both write a string that reads back alike.
func TestQuoted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) })).Draw(t, "text")
		marshaled, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		quoted := Quoted(text)
		var want, got string
		if err := json.Unmarshal(marshaled, &want); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(quoted), &got); err != nil || got != want {
			t.Fatalf("Quoted(%q) = %s, which reads as %q, %v; want %q", text, quoted, got, err, want)
		}
		if strings.ContainsFunc(quoted, func(r rune) bool { return r < ' ' || hidden(r) }) {
			t.Fatalf("Quoted(%q) = %q has a character that a terminal obeys", text, quoted)
		}
		if JSON([]byte(quoted)) != quoted {
			t.Fatalf("JSON changes %s", quoted)
		}
	})
}

func TestError(t *testing.T) {
	state := errors.New("consensus: no state")
	for want, err := range map[string]error{
		"no state":                    state,
		"name --from: no state in d":  fmt.Errorf("name --from: %w in d", state),
		"2: no state\nclosed":         errors.Join(fmt.Errorf("server: 2: %w", state), errors.New("vfs: closed")),
		"no state: no state":          fmt.Errorf("wal: %w: %w", state, state),
		"x: proto: y: no state":       fmt.Errorf("%q: %w", "x: proto: y", state), // what the user wrote
		"in use: --port, or the line": errors.New("server: in use: --port, or the line, or Config.Listen"),
		"host: server: is not server": errors.New("host: server: is not server"),
	} {
		if got := strings.ReplaceAll(Error(err), "\"", ""); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
