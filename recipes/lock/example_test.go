package lock_test

import (
	"context"
	"fmt"
	"log"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/lock"
)

func ExampleMutex_With() {
	c, stop := recipetest.ConnectExample()
	defer stop()

	m := lock.NewMutex(c, "/reports/lock", []byte("host-7"))
	err := m.With(context.Background(), func(ctx context.Context) error {
		// ctx ends before another client can acquire the lock.
		fmt.Println("writing the report:", ctx.Err())
		return nil
	})
	fmt.Println(err)
	// Output:
	// writing the report: <nil>
	// <nil>
}

func ExampleMutex_Lock() {
	c, stop := recipetest.ConnectExample()
	defer stop()
	ctx := context.Background()
	if _, err := c.Create(ctx, "/balance", []byte("100"), recipes.CreateOptions{}); err != nil {
		log.Fatal(err)
	}

	l, err := lock.NewMutex(c, "/bank/lock", nil).Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer func() { fmt.Println("unlocked:", l.Release(ctx)) }()

	// This is written only if the lock is still held at that moment.
	_, err = l.Commit(ctx, client.SetOp("/balance", []byte("90"), -1))
	fmt.Println("written:", err)

	_, err = lock.NewMutex(c, "/bank/lock", nil).TryLock(ctx)
	fmt.Println("somebody else:", err)
	// Output:
	// written: <nil>
	// somebody else: recipes: not acquired
	// unlocked: <nil>
}

func ExampleLock_Revoked() {
	c, stop := recipetest.ConnectExample()
	defer stop()
	ctx := context.Background()

	l, err := lock.NewMutex(c, "/batch/lock", []byte("nightly")).Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	// Another process with more urgent work finds the holder and asks for the lock.
	line, err := lock.Explain(ctx, c, "/batch/lock")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("held by %s\n", line.Holders[0].Data)
	if err := lock.Revoke(ctx, c, line.Holders[0].Path); err != nil {
		log.Fatal(err)
	}

	<-l.Revoked()
	fmt.Println("let go of:", l.Release(ctx))
	// Output:
	// held by nightly
	// let go of: <nil>
}

func ExampleRWMutex_Downgrade() {
	c, stop := recipetest.ConnectExample()
	defer stop()
	ctx := context.Background()

	m := lock.NewRWMutex(c, "/index/lock", nil)
	w, err := m.Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	// The index is rebuilt. From now on others may read it too, and nobody has written to it in
	// between.
	r, err := m.Downgrade(ctx, w)
	if err != nil {
		log.Fatal(err)
	}
	other, err := m.RLocker().TryLock(ctx)
	fmt.Println("another reader:", err)
	_, err = m.TryLock(ctx)
	fmt.Println("a writer:", err)
	fmt.Println(other.Release(ctx), r.Release(ctx))
	// Output:
	// another reader: <nil>
	// a writer: recipes: not acquired
	// <nil> <nil>
}

func ExampleSemaphore() {
	c, stop := recipetest.ConnectExample()
	defer stop()
	ctx := context.Background()

	downloads := lock.NewSemaphore(c, "/downloads", 3, nil)
	two, err := downloads.AcquireN(ctx, 2)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(downloads.With(ctx, func(ctx context.Context) error {
		_, err := downloads.TryAcquire(ctx)
		fmt.Println("a fourth:", err)
		return nil
	}))
	for _, l := range two {
		fmt.Println(l.Release(ctx))
	}
	// Output:
	// a fourth: recipes: not acquired
	// <nil>
	// <nil>
	// <nil>
}

func ExampleMulti() {
	c, stop := recipetest.ConnectExample()
	defer stop()

	both := lock.NewMulti(lock.NewMutex(c, "/accounts/anna", nil), lock.NewMutex(c, "/accounts/berta", nil))
	err := both.With(context.Background(), func(ctx context.Context) error {
		for _, path := range []string{"/accounts/anna", "/accounts/berta"} {
			line, err := lock.Explain(ctx, c, path)
			fmt.Println(path, len(line.Holders), err)
		}
		return nil
	})
	fmt.Println(err)
	// Output:
	// /accounts/anna 1 <nil>
	// /accounts/berta 1 <nil>
	// <nil>
}
