package main

import (
	"bufio"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/zktest"
)

// start runs a part of the program with its input and output in pipes. stop ends the input and
// decodes the result.
func start(t *testing.T, run func(in io.Reader, out io.Writer)) (in io.Writer, await func(line string), stop func(result any)) {
	t.Helper()
	inReader, inWriter := io.Pipe()
	outReader, outWriter := io.Pipe()
	failed := make(chan error, 1)
	// Ends with its input; stop waits for it.
	go func() {
		failed <- must.Try(func() { run(inReader, outWriter) })
		_ = outWriter.Close() // never fails
	}()
	lines := bufio.NewScanner(outReader)
	next := func() string {
		if !lines.Scan() {
			t.Fatalf("the output ended: %v", <-failed)
		}
		return lines.Text()
	}
	await = func(line string) {
		t.Helper()
		if got := next(); got != line {
			t.Fatalf("the output is %q, want %q", got, line)
		}
	}
	stop = func(result any) {
		t.Helper()
		_ = inWriter.Close() // never fails
		if err := json.Unmarshal([]byte(next()), result); err != nil {
			t.Fatal(err)
		}
		if err := <-failed; err != nil {
			t.Error(err)
		}
		_ = inReader.Close() // the attack's reader may still wait
	}
	return inWriter, await, stop
}

// The parts of the program work together on a server that withstands a cheap attack.
func TestAttack_OfAGoodServer(t *testing.T) {
	s := zktest.Start(t)
	addrs := []string{s.ConnectString()}
	kept := plant(t.Context(), addrs)
	probeIn, probeAwait, probeStop := start(t, func(in io.Reader, out io.Writer) { runProbe(addrs, in, out) })
	probeAwait("ready")
	attackIn, attackAwait, attackStop := start(t, func(in io.Reader, out io.Writer) {
		runAttack(t.Context(), "garbage-flood", in, out)
	})
	if _, err := io.WriteString(probeIn, begin+"\n"); err != nil {
		t.Fatal(err)
	}
	if err := json.NewEncoder(attackIn).Encode(&target{Addrs: addrs}); err != nil {
		t.Fatal(err)
	}
	attackAwait("ready")
	var o others
	probeStop(&o)
	var h harm
	attackStop(&h)
	if o.Samples < 2 || o.Disconnected != 0 || len(o.Versions) != 1 {
		t.Errorf("the probe saw %+v", o)
	}
	if h.Breaches != nil || h.Notes != nil {
		t.Errorf("the attacker saw %+v", h)
	}
	if damage := kept.missing(t.Context(), addrs, o.Versions); damage != nil {
		t.Errorf("damage: %s", strings.Join(damage, ", "))
	}
}

// What is gone or old is noticed.
func TestPlanted_NoticesDamage(t *testing.T) {
	addrs := []string{zktest.Start(t).ConnectString()}
	kept := plant(t.Context(), addrs)
	if err := kept.check(t.Context(), addrs, []int32{0}); err != nil {
		t.Errorf("what was planted is not found: %v", err)
	}
	if err := kept.check(t.Context(), addrs, []int32{1}); err == nil {
		t.Error("a lost write was not noticed")
	}
	kept.n++
	if err := kept.check(t.Context(), addrs, nil); err == nil {
		t.Error("a lost znode was not noticed")
	}
}
