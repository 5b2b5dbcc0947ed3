package jepsenlite

import (
	"context"
	"fmt"
	"strconv"

	"github.com/go-zookeeper/zk"
)

// loadBank moves money between accounts in multis with the versions that it read. Now and then it
// reads all accounts and confirms the versions with a multi of checks: then the sum must be the
// initial one.
const (
	loadBank     = "bank"
	bankAccounts = 5
	bankEach     = 100
)

func prepareBank(w *worker) error {
	for i := range bankAccounts {
		if _, err := w.create(account(w, i), strconv.Itoa(bankEach), 0); err != nil {
			return err
		}
	}
	return nil
}

func runBank(ctx context.Context, w *worker) {
	for w.next(ctx) {
		if w.rng.IntN(5) == 0 {
			settleBank(w)
			continue
		}
		from := w.rng.IntN(bankAccounts)
		to := (from + 1 + w.rng.IntN(bankAccounts-1)) % bankAccounts
		x, sx, err := w.balance(from)
		if err != nil {
			continue
		}
		y, sy, err := w.balance(to)
		if err != nil {
			continue
		}
		sum := 1 + w.rng.IntN(9)
		// The history has the result.
		_, _ = w.Multi(
			&zk.SetDataRequest{Path: account(w, from), Data: []byte(strconv.Itoa(x - sum)), Version: sx.Version},
			&zk.SetDataRequest{Path: account(w, to), Data: []byte(strconv.Itoa(y + sum)), Version: sy.Version},
		)
	}
}

func settleBank(w *worker) {
	var checks []any
	for i := range bankAccounts {
		_, stat, err := w.balance(i)
		if err != nil {
			return
		}
		checks = append(checks, &zk.CheckVersionRequest{Path: account(w, i), Version: stat.Version})
	}
	// As above.
	_, _ = w.Multi(checks...)
}

func account(w *worker, i int) string { return fmt.Sprintf("%s/%d", w.dir, i) }

func (w *worker) balance(i int) (int, *zk.Stat, error) {
	data, stat, err := w.Get(account(w, i))
	if err != nil {
		return 0, nil, err
	}
	v, err := strconv.Atoi(string(data))
	return v, stat, err
}
