package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/compat/server"
)

// disks are the directories of small file systems in memory: the archive, and the members' data.
type disks []string

const (
	diskSize    = "300m"
	diskWriters = 16
	diskBytes   = 500 // of a znode
)

// use puts data and archive of an ensemble on disks of their own.
func (d *disks) use(opts *server.EnsembleOptions, dir string) {
	archive := filepath.Join(dir, "archive")
	must.Do(os.Mkdir(archive, 0o700))
	must.Do(d.mount(archive))
	opts.Prepare = d.mount
	opts.Keys["snapCount"], opts.Keys["gozkd.archive.url"], opts.Keys["gozkd.archive.intervalMs"] = "2000", "file://"+archive, "1000"
}

// mount mounts a disk on a directory, and keeps the directory's file myid, if any.
func (d *disks) mount(path string) error {
	id := filepath.Join(path, "myid")
	text, err := os.ReadFile(id)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size="+diskSize, "tmpfs", path).CombinedOutput()
	if err != nil {
		return fmt.Errorf("mount a file system in memory on %s: %w: %s", path, err, out)
	}
	*d = append(*d, path)
	if text == nil {
		return nil
	}
	return os.WriteFile(id, text, 0o600)
}

func (d *disks) unmount() {
	for _, path := range *d {
		_ = exec.Command("umount", "-l", path).Run() // nobody needs it any more
	}
}

func ballast(dir string) string { return filepath.Join(dir, "ballast") }

// fill takes all space of a disk.
func fill(dir string) error {
	f, err := os.Create(ballast(dir))
	if err != nil {
		return err
	}
	for piece := make([]byte, 1<<20); err == nil; {
		_, err = f.Write(piece)
	}
	if errors.Is(err, syscall.ENOSPC) {
		err = nil
	}
	return errors.Join(err, f.Close())
}

// fillDisks fills the disks of that many members until they stop, or that of the archive, and ends
// the work unless they say so, go on by themselves when there is room, and have lost nothing.
func fillDisks(ctx context.Context, full int, p *peer) {
	logs := func(text string) (n int) {
		for _, m := range p.members {
			if strings.Contains(m.Log(), text) {
				n++
			}
		}
		return n
	}
	must.Do(p.connect(ctx).create(ctx, "/full", nil))
	l := newFilled()
	until, cancel := context.WithCancel(ctx)
	defer cancel()
	var writing sync.WaitGroup
	l.run(until, p, diskWriters, make([]byte, diskBytes), &writing)
	l.grows(ctx, "before")
	filled, said := p.disks[1:1+full], "a disk is full, so this server has stopped"
	if full == 0 {
		filled, said = p.disks[:1], "the archive cannot be written"
	}
	for _, path := range filled {
		must.Do(fill(path))
	}
	majority := len(p.members)/2 + 1
	await(ctx, "the log says so", func() bool { return logs(said) >= min(max(1, full), majority) }) // without a quorum, the rest writes nothing
	if full == 1 {
		await(ctx, "the others say so", func() bool { return logs("a server does not answer: server=1") > 0 })
	}
	if len(p.members)-full >= majority {
		l.grows(ctx, "while a disk is full")
	}
	for n, m := range p.members {
		if !m.Running() {
			must.Failf("member %d has ended", n+1)
		}
	}
	for _, path := range filled {
		must.Do(os.Remove(ballast(path)))
	}
	begun := time.Now()
	l.grows(ctx, "when there is room")
	fmt.Printf("%d full: writes %v after there was room\n", full, time.Since(begun).Round(time.Millisecond))
	if full == 0 {
		await(ctx, "the archive is written again", func() bool { return logs("the archive is written again") > 0 })
	}
	cancel()
	writing.Wait()
	for n, addr := range p.addrs {
		var names []string
		await(ctx, fmt.Sprintf("member %d serves", n+1), func() bool {
			one, err := client.Connect(ctx, client.Config{Servers: []string{addr}})
			if err != nil {
				return false
			}
			defer func() { _ = one.Close() }()
			if _, err = one.Sync(ctx, "/"); err == nil {
				names, _, err = one.Children(ctx, "/full", false)
			}
			return err == nil
		})
		slices.Sort(names)
		for _, key := range l.keys {
			if _, found := slices.BinarySearch(names, strings.TrimPrefix(key, "/full/")); !found {
				must.Failf("member %d has lost %s", n+1, key)
			}
		}
		fmt.Printf("member %d has all %d znodes\n", n+1, len(l.keys))
	}
}

// grows returns when another thousand creates have succeeded.
func (l *filled) grows(ctx context.Context, when string) {
	before := l.made.Load()
	await(ctx, "writes go on "+when, func() bool { return l.made.Load() > before+1000 })
}

func await(ctx context.Context, what string, done func() bool) {
	must.Await(ctx, startLimit, what, func() error {
		if !done() {
			return errors.New("not yet")
		}
		return nil
	})
}
