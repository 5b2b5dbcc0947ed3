package golden

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server"
	"github.com/gozkd/gozkd/test/compat/diff/exchange"
	"github.com/gozkd/gozkd/test/compat/diff/generate"
)

// address is another server to replay on. With a fresh ZooKeeper, the recordings themselves are
// tested.
var address = flag.String("address", "", "replay the first file on the fresh server at this address instead of an own gozkd")

// start returns the address of a fresh server with the configuration of the recorded one.
func start(t *testing.T) string {
	t.Helper()
	if *address != "" {
		return *address
	}
	s, err := server.New(server.Config{
		MinSessionTimeout: 20 * time.Second,
		MaxSessionTimeout: 60 * time.Second,
		MaxClientConns:    -1,
		SuperDigest:       "super:xQJmxLMiHGwaqBvst5y6rkB6HQs=",
		EnforceQuota:      true,
		ContainerInterval: time.Hour,
		WatchReplay:       -1, // ZooKeeper sends no missed events
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s.Addr().String()
}

// open lists recordings that gozkd does not pass yet, each with the change that is needed. A
// recording that passes must be removed from the list.
var open = map[string]string{}

func TestRecorded(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no recordings: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			recorded, err := exchange.ReadText(string(text))
			if err != nil {
				t.Fatal(err)
			}
			if len(recorded) == 0 {
				t.Fatal("nothing is recorded in this file")
			}
			player := exchange.NewPlayer(start(t))
			for _, want := range recorded {
				replay(t, player, want)
			}
		})
	}
}

// replay plays a recording and reports the first difference that is not intended.
func replay(t *testing.T, player *exchange.Player, want *exchange.Transcript) {
	t.Run(want.Sequence.Name, func(t *testing.T) {
		got, err := player.Play(t.Context(), want.Sequence, exchange.RootTemplate)
		if err != nil {
			t.Fatal(err)
		}
		m := exchange.Compare(want, got, exchange.Differences(), make(map[string]int))
		switch why := open[want.Sequence.Name]; {
		case m != nil && why == "":
			t.Errorf("a is ZooKeeper, b is this server: %v", m)
		case m != nil:
			t.Logf("to do: %s", why)
		case why != "":
			t.Errorf("passes: take it out of the list of what is open (%s)", why)
		}
	})
}

// TestRecorded_Scenarios fails if a scenario is new or was changed and was not recorded again.
func TestRecorded_Scenarios(t *testing.T) {
	text, err := os.ReadFile("testdata/scenarios.txt")
	if err != nil {
		t.Fatal(err)
	}
	recorded, err := exchange.ReadText(string(text))
	if err != nil {
		t.Fatal(err)
	}
	scenarios := generate.Scenarios()
	if len(recorded) != len(scenarios) {
		t.Fatalf("%d scenarios, %d recorded: run make golden", len(scenarios), len(recorded))
	}
	for i, s := range scenarios {
		if r := recorded[i].Sequence; r.String() != s.WithRoot(exchange.Root(i)).String() {
			t.Errorf("%s is not what was recorded as %s: run make golden", s.Name, r.Name)
		}
	}
}

// In a script that reconnects, a slot gets a new session after the server closed its connection. A
// request with until is repeated until the reply has that code.
func TestPlayer_ReconnectsAndRepeats(t *testing.T) {
	if *address != "" {
		t.Skip("this is a test of the player")
	}
	player := exchange.NewPlayer(start(t))
	list, err := exchange.ReadScript(`sequence a
		reconnects
		connect 0
		0 closes 999
		0 create "/x" null open 0
		0 until=-101 delete "/x" -1`)
	if err != nil {
		t.Fatal(err)
	}
	got, err := player.Play(t.Context(), list[0], exchange.Root(1))
	if err != nil {
		t.Fatal(err)
	}
	created, gone := got.Messages(2), got.Messages(3)
	if len(created) != 2 || created[1].Err() != proto.OK {
		t.Errorf("the create after the reconnection: %v", created)
	}
	if len(gone) != 1 || gone[0].Err() != proto.ErrNoNode {
		t.Errorf("the repeated delete: %v", gone)
	}
}

// TestOwnRules checks intended differences that no sequence covers, because they would end the
// sequence or make the trees differ.
func TestOwnRules(t *testing.T) {
	if *address != "" {
		t.Skip("these are rules of gozkd")
	}
	player := exchange.NewPlayer(start(t))
	for _, s := range generate.OwnRules() {
		t.Run(s.Sequence.Name, func(t *testing.T) {
			got, err := player.Play(t.Context(), s.Sequence, exchange.Root(1))
			if err != nil {
				t.Fatal(err)
			}
			last := len(got.Steps) - 1
			messages := got.Messages(last)
			if len(messages) == 0 || messages[0].Kind != exchange.MessageReply || messages[0].Err() != s.Err {
				t.Fatalf("got %v, want %v", messages, s.Err)
			}
			if closed := messages[len(messages)-1].Note == exchange.NoteClosed; closed != (s.Err == proto.ErrUnimplemented) {
				t.Errorf("closed: %t", closed)
			}
		})
	}
}
