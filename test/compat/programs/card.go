package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/web/browser"
)

// explorerLine is the line of a gozkd server's log that has the address of its explorer.
var explorerLine = regexp.MustCompile(`serving REST and the explorer: .*url=(http://\S+)/ui/`)

// awaitCard waits until the explorer's first screen says these facts of the program, and no others.
// ZooKeeper has no explorer.
func (w *world) awaitCard(ctx context.Context, program string, facts ...string) {
	if w.kind.Name != "gozkd" {
		return
	}
	found := explorerLine.FindAllStringSubmatch(w.ensemble.Members[0].Log(), -1)
	if found == nil {
		must.Failf("the log of server 1 does not say where the explorer is")
	}
	chromium := must.Get(browser.Start(cmp.Or(os.Getenv("GOZKD_BROWSER"), "chromium")))
	defer must.Finally(chromium.Close)
	page := must.Get(chromium.NewPage(ctx, func(string, json.RawMessage) {}))
	// The last one: a server that was restarted has another port.
	must.Do(page.Call(ctx, "Page.navigate", map[string]any{"url": found[len(found)-1][1] + "/ui/#/overview"}, nil))
	w.await(ctx, "the explorer's card of "+program, func() error {
		var lines []string
		must.Do(page.Eval(ctx, fmt.Sprintf(`[...document.querySelectorAll('.app')].filter((e) => e.querySelector('h3').textContent === %q)
			.flatMap((e) => [...e.querySelectorAll('li')].map((f) => (f.querySelector('.bad') ? 'bad: ' : '') + f.textContent))`, program), &lines))
		slices.Sort(lines)
		slices.Sort(facts)
		if !slices.Equal(lines, facts) {
			return fmt.Errorf("the card says %q, %s itself %q", strings.Join(lines, "; "), program, strings.Join(facts, "; "))
		}
		return nil
	})
}
