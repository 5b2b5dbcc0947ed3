package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/proto"
)

// TestServe_LimitOfFileSizes: servers whose process may write 8 MiB to a file (ulimit -f) become
// full, because a checkpoint must fit into such a file, and do not stop. When data are deleted,
// creates succeed again. Servers whose files are longer than a limit that is set later stop, and
// come back by themselves when the limit is raised. Nothing is lost.
func TestServe_LimitOfFileSizes(t *testing.T) {
	const limit, bytes = 8 << 20, 100_000
	allow := func(pid int, most uint64) {
		t.Helper()
		if err := unix.Prlimit(pid, unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: most, Max: math.MaxUint64}, nil); err != nil {
			t.Fatal(err)
		}
	}
	allow(os.Getpid(), limit) // the program inherits the limit
	defer allow(os.Getpid(), math.MaxUint64)
	p := launch(t, "serve", "--data-dir", t.TempDir(), "--client-port", "0", "--ensemble", "3", "-o", "snapCount=30")
	var servers []string
	for _, m := range p.ports.Members {
		servers = append(servers, m.Client)
	}
	c, err := client.Connect(t.Context(), client.Config{Servers: servers, SessionTimeout: 40 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Detach()
	var kept []string
	create := func(name string) (err error) {
		await(t, name, func() error {
			_, _, err = c.Create(t.Context(), name, make([]byte, bytes), client.CreateOptions{})
			if errors.Is(err, proto.ErrNodeExists) { // an earlier attempt created it, and lost its reply
				err = nil
			}
			if errors.Is(err, proto.ErrQuotaExceeded) {
				return nil
			}
			return err
		})
		if err == nil {
			kept = append(kept, name)
		}
		return err
	}
	fill := func(prefix string) {
		t.Helper()
		for i := 0; create(fmt.Sprint(prefix, i)) == nil; i++ {
			if i*bytes > limit {
				t.Fatalf("%d znodes of %d bytes are accepted", i, bytes)
			}
		}
	}
	deleteSome := func() {
		for _, name := range kept[:10] {
			await(t, "the delete of "+name, func() error {
				err := c.Delete(t.Context(), name, -1)
				if errors.Is(err, proto.ErrNoNode) {
					return nil
				}
				return err
			})
		}
		kept = slices.Delete(kept, 0, 10)
	}
	accepted := func(name string) {
		t.Helper()
		await(t, name, func() error { return create(name) })
	}
	stopped := func() bool { return p.Stderr.Count("this server has stopped") > 0 }
	fill("/full-")
	deleteSome()
	accepted("/after-deletes")
	fill("/full-again-")
	for range 2 * limit / bytes { // until the log has several segments
		if _, err := c.Set(t.Context(), "/full-10", make([]byte, bytes), -1); err != nil {
			t.Fatal(err)
		}
	}
	if stopped() {
		t.Error("a server has stopped")
	}
	allow(p.Pid(), limit/8)
	await(t, "the end of a server", func() error {
		if stopped() {
			return nil
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := c.Set(ctx, "/full-10", make([]byte, bytes), -1)
		return errors.Join(errors.New("it runs"), err)
	})
	allow(p.Pid(), math.MaxUint64)
	accepted("/after-the-limit")
	for _, name := range kept {
		if data, _, err := c.Get(t.Context(), name, false); err != nil || len(data) != bytes {
			t.Errorf("%s has %d bytes: %v", name, len(data), err)
		}
	}
	if status := p.Stop(syscall.SIGTERM); status != 0 {
		t.Errorf("status %d", status)
	}
}
