package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/proto"
)

// A full disk stops its member, which serves again by itself when there is room, also on a small
// disk. The others go on, and no acknowledged write is lost.
func TestEnsemble_FullDisk(t *testing.T) {
	dir := t.TempDir()
	disk := filepath.Join(dir, "1")
	if err := os.MkdirAll(disk, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=64m"); err != nil {
		t.Skip("only root can mount a small disk: ", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(disk, syscall.MNT_DETACH); err != nil { // the process ends later
			t.Error(err)
		}
	})
	p := launch(t, "serve", "--data-dir", dir, "--client-port", "0", "--ensemble", "3", "-o", "snapCount=10", "-o", "preAllocSize=1024")
	full, others := p.ports.Members[0].Client, p.ports.Members[1].Client
	ask := func(server string, question func(context.Context, *client.Client) error) error {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		c, err := client.Connect(ctx, client.Config{Servers: []string{server}})
		if err != nil {
			return err
		}
		defer c.Detach()
		return question(ctx, c)
	}
	written := 0
	write := func(server string) error {
		return ask(server, func(ctx context.Context, c *client.Client) error {
			_, _, err := c.Create(ctx, fmt.Sprint("/", written), nil, client.CreateOptions{})
			if err == nil || errors.Is(err, proto.ErrNodeExists) {
				written++
			}
			return err
		})
	}
	await(t, "the first write", func() error { return write(full) })
	ballast := filepath.Join(disk, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 64<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Fatal("the disk is not full: ", err)
	}
	await(t, "the end of the server", func() error { // with the checkpoint after ten requests, at the latest
		c, err := net.Dial("tcp", full)
		if err != nil {
			return nil
		}
		_ = c.Close() // said nothing
		return errors.Join(errors.New("it serves"), write(others))
	})
	if err := write(others); err != nil {
		t.Error("the others do not go on: ", err)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	await(t, "the server after its disk was full", func() error { return write(full) })
	for i := range written {
		if err := ask(full, func(ctx context.Context, c *client.Client) error {
			_, _, err := c.Get(ctx, fmt.Sprint("/", i), false)
			return err
		}); err != nil {
			t.Errorf("write %d: %v", i, err)
		}
	}
	if status := p.Stop(syscall.SIGTERM); status != 0 || strings.Count(p.Stderr.String(), "a disk is full, so this server has stopped") != 1 {
		t.Errorf("status %d, or the log does not say once that the disk is full:\n%s", status, &p.Stderr)
	}
}
