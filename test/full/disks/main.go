//go:build linux

// Command disks fills the disks of running members until they stop, and says what happens then:
// docs/guide/capacity.md. The data directories of three gozkd servers, and their archive, are on
// small file systems in memory. Needs root and Linux.
//
// Exit status: 1 if something was lost, or did not go on by itself, or the experiment could not be
// carried out; 2 for wrong usage.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/compat/server"
)

func main() { must.Program("disks", run) }

const (
	members = 3
	// patience bounds the wait for anything that must happen by itself.
	patience = time.Minute
)

func run(ctx context.Context, args []string) {
	flags := flag.NewFlagSet("disks", flag.ContinueOnError)
	full := flags.Int("full", 1, "how many members' disks are filled; 0: that of the archive")
	mib := flags.Int("mib", 300, "size of each disk")
	must.Parsed(flags.Parse(args))
	dir := must.Get(os.MkdirTemp("", "gozkd-disks-"))
	defer must.Finally(func() error { return os.RemoveAll(dir) })
	var disks []string
	mount := func(path string) error { // keeps the file myid
		disks = append(disks, path)
		myid, err := os.ReadFile(filepath.Join(path, "myid"))
		if err != nil {
			return err
		}
		if err := syscall.Mount("tmpfs", path, "tmpfs", 0, fmt.Sprintf("size=%dm", *mib)); err != nil {
			return fmt.Errorf("mount a file system in memory on %s: %w", path, err)
		}
		return os.WriteFile(filepath.Join(path, "myid"), myid, 0o600)
	}
	unmount := func() error {
		for _, path := range disks {
			_ = syscall.Unmount(path, syscall.MNT_DETACH) // fails the second time
		}
		return nil
	}
	defer must.Finally(unmount)
	archive := filepath.Join(dir, "archive")
	must.Do(errors.Join(os.Mkdir(archive, 0o700), os.WriteFile(filepath.Join(archive, "myid"), nil, 0o600), mount(archive)))
	keys := server.Defaults()
	keys["snapCount"], keys["gozkd.archive.url"], keys["gozkd.archive.intervalMs"] = "2000", "file://"+archive, "1000"
	gozkd := server.KindNamed(ctx, server.Gozkd, "", dir)
	e := must.Get(gozkd.StartEnsemble(ctx, server.EnsembleOptions{Members: members, Keys: keys, Prepare: mount}))
	defer must.Finally(e.Stop)
	defer must.Finally(unmount) // before Stop removes the directories
	c := must.Get(client.Connect(ctx, client.Config{Servers: e.Addrs()}))
	w := &writes{client: c}
	stop, cancel := context.WithCancel(ctx)
	var writing sync.WaitGroup
	for i := range 16 {
		writing.Go(func() { w.write(stop, fmt.Sprintf("/%d-", i)) }) // ends with stop
	}
	logs := func(n int) string { return e.Members[n].Log() }
	w.grows("before")
	filled, said := disks[1:1+*full], "a disk is full, so this server has stopped"
	if *full == 0 {
		filled, said = disks[:1], "the archive cannot be written"
	}
	for _, path := range filled {
		must.Do(fill(path))
	}
	await("the log says so", func() bool {
		k := 0
		for n := range members {
			if strings.Contains(logs(n), said) {
				k++
			}
		}
		return k >= max(1, min(*full, members-1)) // without a quorum, the third writes nothing
	})
	if *full == 1 {
		await("the others say so", func() bool {
			return strings.Contains(logs(1)+logs(2), "a server does not answer: server=1")
		})
	}
	if *full < members-1 {
		w.grows("while a disk is full")
	}
	for n := range members {
		if !e.Members[n].Running() {
			must.Failf("member %d has ended:\n%s", n+1, logs(n))
		}
	}
	for _, path := range filled {
		must.Do(os.Remove(ballast(path)))
	}
	begun := time.Now()
	w.grows("when there is room")
	fmt.Printf("%d full: writes %v after there was room\n", *full, time.Since(begun).Round(time.Millisecond))
	if *full == 0 {
		await("the archive is written again", func() bool {
			return slices.ContainsFunc([]int{0, 1, 2}, func(n int) bool { return strings.Contains(logs(n), "the archive is written again") })
		})
	}
	cancel()
	writing.Wait()
	for n, addr := range e.Addrs() {
		var names []string
		await(fmt.Sprintf("member %d serves", n+1), func() bool {
			one, err := client.Connect(ctx, client.Config{Servers: []string{addr}})
			if err != nil {
				return false
			}
			defer func() { _ = one.Close() }()
			if _, err = one.Sync(ctx, "/"); err == nil {
				names, _, err = one.Children(ctx, "/", false)
			}
			return err == nil
		})
		w.kept(n+1, names)
	}
}

// writes are creates that were acknowledged.
type writes struct {
	client *client.Client
	n      atomic.Int64
	mu     sync.Mutex // guards paths
	paths  []string
}

func (w *writes) write(ctx context.Context, prefix string) {
	for n := 0; ctx.Err() == nil; n++ {
		path := fmt.Sprint(prefix, n)
		if _, _, err := w.client.Create(ctx, path, make([]byte, 500), client.CreateOptions{}); err != nil {
			time.Sleep(100 * time.Millisecond)
			continue
		}
		w.n.Add(1)
		w.mu.Lock()
		w.paths = append(w.paths, path)
		w.mu.Unlock()
	}
}

// grows returns when another thousand creates have succeeded.
func (w *writes) grows(when string) {
	before := w.n.Load()
	await("writes go on "+when, func() bool { return w.n.Load() > before+1000 })
}

func (w *writes) kept(member int, names []string) {
	has := make(map[string]bool, len(names))
	for _, name := range names {
		has["/"+name] = true
	}
	for _, path := range w.paths {
		if !has[path] {
			must.Failf("member %d has lost %s", member, path)
		}
	}
	fmt.Printf("member %d has all %d znodes\n", member, len(w.paths))
}

func await(what string, done func() bool) {
	must.Await(context.Background(), patience, what, func() error {
		if !done() {
			return errors.New("not yet")
		}
		return nil
	})
}

func ballast(dir string) string { return filepath.Join(dir, "ballast") }

// fill takes all space of a disk.
func fill(dir string) (err error) {
	f, err := os.Create(ballast(dir))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	for size, piece := int64(0), int64(64<<20); piece >= 4096; {
		switch err := syscall.Fallocate(int(f.Fd()), 0, size, piece); {
		case err == nil:
			size += piece
		case errors.Is(err, syscall.ENOSPC):
			piece /= 2
		case !errors.Is(err, syscall.EINTR):
			return err
		}
	}
	return nil
}
