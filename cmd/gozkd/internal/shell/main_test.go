package shell

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/cli"
	"github.com/gozkd/gozkd/internal/testkit/watchdog"
)

// asProgram makes the test binary run gozkd cli: tests of signals need a process.
const asProgram = "GOZKD_TEST_AS_CLI"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		completeTimeout = time.Hour // the tests wait for what Tab shows, however busy the machine is
		os.Exit(Main(ctx, os.Args[1:], cli.Env{
			In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Getenv: os.Getenv,
			Interrupts: func() (<-chan os.Signal, func()) {
				signal.Reset(os.Interrupt)
				c := make(chan os.Signal, 1)
				signal.Notify(c, os.Interrupt)
				return c, func() { signal.Stop(c) }
			},
		}))
	}
	goleak.VerifyTestMain(watchdog.Watch(m))
}

// ranCLI is the result of running gozkd cli.
type ranCLI struct {
	status   int
	out, err string
}

// runCLI runs gozkd cli in this process with the given input and environment.
func runCLI(t *testing.T, in string, env map[string]string, args ...string) ranCLI {
	t.Helper()
	var out, errs lockedBuffer
	status := Main(t.Context(), args, testEnv(in, &out, &errs, env))
	return ranCLI{status, out.String(), errs.String()}
}
