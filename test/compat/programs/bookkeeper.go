package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/compat/server"
)

func installBookKeeper(ctx context.Context, root string) (string, func(context.Context, *world) string) {
	b := &bookKeeper{javaProgram: installMaven(ctx, root, "bookkeeper", "bookkeeper-server")}
	return b.version, b.check
}

// bookKeeper is a cluster of four bookies. Each entry is on three of them.
type bookKeeper struct {
	javaProgram
	*world
	bookies map[string]*server.Process // by host:port
}

// check kills the ensemble's leader and then the bookie that is the auditor while ledgers are
// written, and waits until the other bookies have copies of all entries on that bookie.
func (b *bookKeeper) check(ctx context.Context, w *world) string {
	const bookies, some = 4, 400
	b.world, b.bookies = w, make(map[string]*server.Process)
	b.client(ctx, "init")
	for _, port := range must.Get(server.FreePorts(bookies)) {
		b.startBookie(port)
	}
	auditor := b.awaitBookies(ctx, bookies)
	writer := w.startWorker("writer", b.command(w, "BookKeeperClient", "write", b.uri()))
	w.aroundLeader(ctx, func() { writer.more(ctx, w, some) })
	must.Do(b.bookies[auditor].Kill())
	writer.more(ctx, w, some)
	acked := values(writer.end(ctx), "acked")

	b.awaitBookies(ctx, bookies-1)
	w.await(ctx, "copies of the entries on the killed bookie", func() error {
		if holders := values(b.client(ctx, "view"), "holder"); len(holders) == 0 || slices.Contains(holders, auditor) {
			return fmt.Errorf("parts of ledgers are on %s, which was killed", auditor)
		}
		return nil
	})
	must.Do(kept(acked, values(b.client(ctx, "read"), "got")))
	return fmt.Sprintf("%d acknowledged entries, each read once", len(acked))
}

func (b *bookKeeper) uri() string {
	return "zk+hierarchical://" + b.connect(";") + "/ledgers"
}

func (b *bookKeeper) startBookie(port int) {
	name := fmt.Sprintf("bookie-%d", port)
	config := b.configure("bookkeeper/bookie.conf", name+".conf", map[string]any{
		"Port": port, "Ledgers": b.uri(), "Data": filepath.Join(b.dir, name),
	})
	b.bookies[fmt.Sprintf("127.0.0.1:%d", port)] = b.start(name, b.command(b.world, "org.apache.bookkeeper.server.Main", "--conf", config))
}

// client runs a command of BookKeeperClient and returns its output.
func (b *bookKeeper) client(ctx context.Context, command string) string {
	return b.ask(ctx, command, b.command(b.world, "BookKeeperClient", command, b.uri()))
}

// awaitBookies waits until n bookies are available and one of them is the auditor, and returns the
// auditor.
func (b *bookKeeper) awaitBookies(ctx context.Context, n int) (auditor string) {
	b.await(ctx, fmt.Sprintf("%d bookies and an auditor", n), func() error {
		view := b.client(ctx, "view")
		bookies := values(view, "bookie")
		if len(bookies) != n {
			return fmt.Errorf("there are %d bookies", len(bookies))
		}
		auditors := values(view, "auditor")
		if len(auditors) != 1 || !slices.Contains(bookies, auditors[0]) {
			return fmt.Errorf("the auditor is %s", auditors)
		}
		auditor = auditors[0]
		return nil
	})
	return auditor
}
