package jepsenlite

import (
	"fmt"
	"strconv"

	"github.com/gozkd/gozkd/proto"
)

// findBank: the balances confirmed by a multi of checks add up to the initial sum.
func findBank(h []*Record, found func(string, ...*Record)) {
	type key struct{ client, path string }
	last := map[key]*Record{} // the reads before the multi
	for _, r := range h {
		if !isOf(r, loadBank) || !r.OK() {
			continue
		}
		if r.Op == proto.OpGetData {
			last[key{r.Client, r.Path()}] = r
			continue
		}
		if r.Op != proto.OpMulti || r.Parts[0].Op != proto.OpCheck {
			continue
		}
		sum, read := 0, []*Record{r}
		for _, p := range r.Parts {
			g := last[key{r.Client, p.Path}]
			if g == nil || g.Parts[0].Stat.Version != p.Version {
				break // read before the history begins
			}
			v, err := strconv.Atoi(g.Parts[0].Got)
			if err != nil {
				found(fmt.Sprintf("account %s holds %q", p.Path, g.Parts[0].Got), g)
			}
			sum += v
			read = append(read, g)
		}
		if len(read) == 1+bankAccounts && sum != bankAccounts*bankEach {
			found(fmt.Sprintf("the bank holds %d, want %d", sum, bankAccounts*bankEach), read...)
		}
	}
}
