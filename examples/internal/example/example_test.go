package example

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozkd/gozkd/internal/tcpport"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/zktest"
)

// Without -server each program has its own server; otherwise all use the given one.
func TestRun(t *testing.T) {
	for _, servers := range []string{"", zktest.Start(t).ConnectString()} {
		for i := range 2 {
			err := runWith(t.Context(), servers, func(ctx context.Context, connect Connect, _ io.Writer) error {
				c, err := connect(ctx)
				if err != nil {
					return err
				}
				defer c.Close()
				if stat, err := c.Exists(ctx, "/a"); err != nil || (stat != nil) != (servers != "" && i == 1) {
					return fmt.Errorf("run %d on %q: %+v, %w", i, servers, stat, err)
				} else if stat != nil {
					return nil
				}
				_, err = c.Create(ctx, "/a", nil, recipes.CreateOptions{})
				return err
			})
			if err != nil {
				t.Error(err)
			}
		}
	}
}

// Without a server a program fails soon, and the error says why.
func TestRun_NoServer(t *testing.T) {
	gone, err := tcpport.Reserve("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer gone.Release()
	synctest.Test(t, func(t *testing.T) {
		err := runWith(t.Context(), gone.Address(), func(ctx context.Context, connect Connect, _ io.Writer) error {
			_, err := connect(ctx)
			return err
		})
		if !errors.Is(err, errNoServer) {
			t.Error(err)
		}
	})
}

func TestTogether(t *testing.T) {
	errOdd := errors.New("odd")
	meet := make(chan int, 4)
	err := Together(4, func(i int) error {
		meet <- i
		for len(meet) < cap(meet) { // all run at once
			if err := Sleep(t.Context(), time.Millisecond); err != nil {
				return err
			}
		}
		if i%2 == 1 {
			return errOdd
		}
		return nil
	})
	if !errors.Is(err, errOdd) || err.Error() != "process 1: odd\nprocess 3: odd" {
		t.Error(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errOdd)
	if err := Sleep(ctx, time.Hour); !errors.Is(err, errOdd) {
		t.Error(err)
	}
}
