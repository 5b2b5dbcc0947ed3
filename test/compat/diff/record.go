package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gozkd/gozkd/test/compat/diff/exchange"
	"github.com/gozkd/gozkd/test/compat/diff/generate"
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
func record(ctx context.Context, start *starter, name, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	chosen, err := choose(ctx, start, name)
	if err != nil {
		return err
	}
	for file, list := range map[string][]*exchange.Sequence{"scenarios.txt": generate.Scenarios(), "generated.txt": chosen} {
		if err := recordFile(ctx, start, name, filepath.Join(dir, file), list); err != nil {
			return err
		}
	}
	return nil
}

// choose returns short generated sequences that each reach something new.
func choose(ctx context.Context, start *starter, name string) (chosen []*exchange.Sequence, err error) {
	p, err := start.start(ctx, name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.Stop()) }()
	player, reached := exchange.NewPlayer(p.Addr()), make(map[string]bool)
	for n := 0; n < goldenTries && len(chosen) < goldenMost; n++ {
		s := generate.Short(goldenSeed, uint64(n))
		t, err := player.Play(ctx, s, exchange.Root(n))
		if err != nil {
			return nil, err
		}
		var text bytes.Buffer
		if err := exchange.WriteText(&text, []*exchange.Transcript{t}); err != nil {
			return nil, err
		}
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
	return chosen, nil
}

func recordFile(ctx context.Context, start *starter, name, file string, list []*exchange.Sequence) (err error) {
	p, err := start.start(ctx, name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Stop()) }()
	var transcripts []*exchange.Transcript
	for n, s := range list {
		t, err := exchange.NewPlayer(p.Addr()).Play(ctx, s, exchange.Root(n))
		if err != nil {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
		t.Normalise()
		transcripts = append(transcripts, t)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "# Recorded from %s by make golden. Replayed in this order on a fresh server by test/golden.\n", p.Name())
	fmt.Fprintf(&b, "# The format is described in test/compat/diff/exchange/text.go.\n")
	if err := exchange.WriteText(&b, transcripts); err != nil {
		return err
	}
	fmt.Printf("%s: %d sequences, %d bytes\n", file, len(transcripts), b.Len())
	return os.WriteFile(file, b.Bytes(), 0o644)
}
