package probe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/gozkd/gozkd/internal/neterr"
	"github.com/gozkd/gozkd/internal/tcpport"
	"github.com/gozkd/gozkd/internal/testkit/watchdog"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(watchdog.Watch(m)) }

// answering returns an Asker whose servers read a word and call answer.
func answering(t *testing.T, answer func(nc net.Conn, word string)) Asker {
	var servers sync.WaitGroup
	t.Cleanup(servers.Wait)
	return Asker{Dial: func(context.Context, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		servers.Go(func() { // ends with the exchange: the asker closes its end
			defer theirs.Close()
			word := make([]byte, 4)
			if _, err := io.ReadFull(theirs, word); err != nil {
				t.Errorf("no word came: %v", err)
				return
			}
			answer(theirs, string(word))
		})
		return ours, nil
	}}
}

func saying(t *testing.T, text string) Asker {
	return answering(t, func(nc net.Conn, _ string) { _, _ = io.WriteString(nc, text) }) // the asker may have closed the connection
}

func TestAsk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := answering(t, func(nc net.Conn, word string) {
			for range 3 { // an answer may arrive in parts
				_, _ = io.WriteString(nc, word+"!")
				time.Sleep(time.Second)
			}
		})
		if got, err := a.Ask(t.Context(), "s:1", "mntr"); err != nil || got != "mntr!mntr!mntr!" {
			t.Errorf("%q, %v", got, err)
		}
	})
}

func TestAsk_Refused(t *testing.T) {
	for _, c := range []struct {
		answer, word string
		is           error
		want         string
	}{
		{"mntr is not executed because it is not in the whitelist.\n", "mntr", ErrNotAllowed,
			"s:1: mntr: not in the whitelist: add mntr to 4lw.commands.whitelist in zoo.cfg"},
		{"This ZooKeeper instance is not currently serving requests\n", "srvr", ErrNotServing,
			"s:1: srvr: not part of a quorum, so not serving"},
		{"This ZooKeeper instance is not currently serving requests", "hash", ErrNotServing, ""},
		{"", "hotp", ErrNoAnswer, "s:1: hotp: the connection was closed without an answer"},
		{strings.Repeat("x", 101), "cons", ErrTooLarge, "s:1: cons: the answer is too long"},
	} {
		synctest.Test(t, func(t *testing.T) {
			a := saying(t, c.answer)
			a.MaxBytes = 100
			got, err := a.Ask(t.Context(), "s:1", c.word)
			if !errors.Is(err, c.is) || c.want != "" && err.Error() != c.want {
				t.Errorf("%s: %v, want %s", c.word, err, c.want)
			}
			if want := c.answer[:min(100, len(c.answer))]; errors.Is(c.is, ErrTooLarge) && got != want || !errors.Is(c.is, ErrTooLarge) && got != "" {
				t.Errorf("%s: the answer is %q", c.word, got)
			}
			if Reached(err) == errors.Is(c.is, ErrNoAnswer) {
				t.Errorf("%s: Reached is %t", c.word, Reached(err))
			}
		})
	}
}

func TestAsk_AtTheBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := saying(t, strings.Repeat("x", 100))
		a.MaxBytes = 100
		if got, err := a.Ask(t.Context(), "s:1", "cons"); err != nil || len(got) != 100 {
			t.Errorf("%d bytes, %v", len(got), err)
		}
	})
}

// The timeout applies to a server that hangs, and to one that sends single bytes slowly.
func TestAsk_Timeout(t *testing.T) {
	for name, answer := range map[string]func(net.Conn, string){
		"silent": func(nc net.Conn, _ string) { _, _ = nc.Read(make([]byte, 1)) },
		"slow": func(nc net.Conn, _ string) {
			for err := error(nil); err == nil; time.Sleep(time.Second) {
				_, err = io.WriteString(nc, "x")
			}
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			a := answering(t, answer)
			_, err := a.Ask(t.Context(), "s:1", "srvr")
			if took := time.Since(start); took != DefaultTimeout {
				t.Errorf("%s: it took %v", name, took)
			}
			if !errors.Is(err, os.ErrDeadlineExceeded) || err.Error() != "s:1: srvr: no answer within 5s" {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}

// The advice about a server that hangs is sought within the limit, however long that takes.
func TestAsk_AdviceWithinTheLimit(t *testing.T) {
	for name, c := range map[string]struct {
		advise func(ctx context.Context) error
		want   string
	}{
		"found":      {func(context.Context) error { time.Sleep(2 * time.Second); return errors.New("add --tls") }, "s:1: srvr: no answer within 5s; add --tls"},
		"wrong port": {func(context.Context) error { return neterr.ForHTTP }, "s:1: srvr: " + neterr.ForHTTP.Error()},
		"hangs":      {func(ctx context.Context) error { <-ctx.Done(); return nil }, "s:1: srvr: no answer within 5s"},
	} {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			a := answering(t, func(nc net.Conn, _ string) { _, _ = nc.Read(make([]byte, 1)) })
			a.Advise = func(ctx context.Context, _ string, _ error) error { return c.advise(ctx) }
			_, err := a.Ask(t.Context(), "s:1", "srvr")
			if took := time.Since(start); took != DefaultTimeout || err.Error() != c.want {
				t.Errorf("%s: after %v: %v", name, took, err)
			}
		})
	}
}

// The advice is about the error that came, also if that came late.
func TestAsk_AdviceAboutTheError(t *testing.T) {
	for _, after := range []time.Duration{time.Second, 4 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			a := answering(t, func(nc net.Conn, _ string) { time.Sleep(after) }) // closes without an answer
			a.Advise = func(_ context.Context, _ string, err error) error { return fmt.Errorf("advice about %w", err) }
			_, err := a.Ask(t.Context(), "s:1", "hotp")
			if want := "s:1: hotp: " + ErrNoAnswer.Error() + "; advice about " + ErrNoAnswer.Error(); err == nil || err.Error() != want {
				t.Errorf("after %v: %v", after, err)
			}
		})
	}
}

func TestAsk_Cancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		a := answering(t, func(nc net.Conn, _ string) { _, _ = nc.Read(make([]byte, 1)) })
		if _, err := a.Ask(ctx, "s:1", "srvr"); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

// Without a listener, the error contains the address and the system's message once.
func TestAsk_Unreachable(t *testing.T) {
	gone, err := tcpport.Reserve("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer gone.Release()
	address := gone.Address()
	_, err = Asker{}.Ask(t.Context(), address, "srvr")
	if err == nil || err.Error() != address+": srvr: connection refused" || Reached(err) {
		t.Error(err)
	}
	if _, err := (Asker{}).Ask(t.Context(), "127.0.0.1", "srvr"); err == nil || !strings.Contains(err.Error(), "missing port in address") {
		t.Error(err)
	}
}
