package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/compat/diff/exchange"
	"github.com/gozkd/gozkd/test/compat/diff/generate"
	"github.com/gozkd/gozkd/test/compat/server"
)

const (
	// goldenSeed is fixed, so that a new recording asks the same.
	goldenSeed = 20
	// goldenTries is the number of generated sequences to choose from.
	goldenTries = 6000
	// goldenMost bounds the number of recorded sequences and goldenBytes the text of each, so that
	// people can read them.
	goldenMost, goldenBytes = 200, 2500
)

// record asks a server the hand-written sequences and some generated ones, and writes its replies
// into dir. Each file is recorded from a new server, and must be replayed on one, with all its
// sequences in order.
func record(ctx context.Context, start *starter, kind server.Kind, dir string) {
	must.Do(os.MkdirAll(dir, 0o755))
	for file, list := range map[string][]*exchange.Sequence{"scenarios.txt": generate.Scenarios(), "generated.txt": choose(ctx, start, kind)} {
		recordFile(ctx, start, kind, filepath.Join(dir, file), list)
	}
}

// choose returns short generated sequences that each reach something new.
func choose(ctx context.Context, start *starter, kind server.Kind) (chosen []*exchange.Sequence) {
	p := start.start(ctx, kind)
	defer must.Finally(p.Stop)
	player, reached := exchange.NewPlayer(p.Addr()), make(map[string]bool)
	for n := 0; n < goldenTries && len(chosen) < goldenMost; n++ {
		s := generate.Short(goldenSeed, uint64(n))
		t := must.Get(player.Play(ctx, s, exchange.Root(n)))
		var text bytes.Buffer
		must.Do(exchange.WriteText(&text, []*exchange.Transcript{t}))
		if text.Len() > goldenBytes {
			continue
		}
		before := len(reached)
		for _, r := range t.Reached() {
			reached[r] = true
		}
		if len(reached) > before {
			chosen = append(chosen, s)
		}
	}
	return chosen
}

func recordFile(ctx context.Context, start *starter, kind server.Kind, file string, list []*exchange.Sequence) {
	p := start.start(ctx, kind)
	defer must.Finally(p.Stop)
	var transcripts []*exchange.Transcript
	for n, s := range list {
		t, err := exchange.NewPlayer(p.Addr()).Play(ctx, s, exchange.Root(n))
		if err != nil {
			must.Failf("%s: %w", s.Name, err)
		}
		t.Normalize()
		transcripts = append(transcripts, t)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "# Recorded from %s by make golden. Replayed in this order on a fresh server by test/golden.\n", p.Name())
	fmt.Fprintf(&b, "# The format is described in test/compat/diff/exchange/script.go.\n")
	must.Do(exchange.WriteText(&b, transcripts))
	fmt.Printf("%s: %d sequences, %d bytes\n", file, len(transcripts), b.Len())
	must.Do(os.WriteFile(file, b.Bytes(), 0o644))
}
