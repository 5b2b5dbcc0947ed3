package explore

import (
	"context"
	"sync"
	"time"

	"github.com/gozkd/gozkd/internal/printable"
	"github.com/gozkd/gozkd/internal/probe"
	"github.com/gozkd/gozkd/internal/serverlist"
)

const (
	askTime   = 2 * time.Second // of a word
	askEvery  = 2 * time.Second // whoever looks
	maxAsked  = 32              // members
	maxReason = 200             // bytes
)

// others are the answers of the other members, which are asked with four-letter words, without
// credentials, at the client addresses that the ensemble's configuration has.
type others struct {
	ask  AskFunc
	port int // of members whose server line has none; 0: unknown

	mu    sync.Mutex // guards the fields below, and makes callers wait for the answers
	at    time.Time
	facts map[int]*answers
}

type answers struct {
	Mode    string `json:"mode,omitempty"`
	Version string `json:"version,omitempty"`
	Zxid    string `json:"zxid,omitempty"`
	// Values are numbers of mntr and dirs: those of wanted and dirSizes.
	Values map[string]float64 `json:"values,omitempty"`
	// Unknown is why something is missing.
	Unknown string `json:"unknown,omitempty"`
}

// wanted are the values of mntr that are shown for each member.
var wanted = []string{
	"znode_count", "approximate_data_size", "digest_mismatches_count", "p99_gozkd_log_sync_duration_seconds",
	"gozkd_term", "gozkd_applied_index", "gozkd_feature_level", "gozkd_feature_level_max", "gozkd_tls_certificate_expires_seconds",
	"gozkd_archive_lag_seconds", "gozkd_archive_shipper", "gozkd_archive_verified_seconds", "gozkd_archive_verify_failed",
}

var dirSizes = []string{"datadir_size", "logdir_size"}

// of returns the answers of the members except one, by number. They are at most askEvery old.
func (o *others) of(members serverlist.Set, own int) map[int]*answers {
	if o.ask == nil {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if time.Since(o.at) < askEvery {
		return o.facts
	}
	// NB: not the context of the caller: others wait for the answers, too.
	ctx, cancel := context.WithTimeout(context.Background(), 2*askTime)
	defer cancel()
	facts := make(map[int]*answers)
	var asking sync.WaitGroup
	for _, m := range members[:min(len(members), maxAsked)] {
		if int(m.ID) == own {
			continue
		}
		a := &answers{}
		facts[int(m.ID)] = a
		if m.ClientPort == 0 && o.port == 0 {
			a.Unknown = "its server line has no client port"
			continue
		}
		asking.Go(func() { // ends with ctx; awaited below
			if err := a.get(ctx, o.ask, m.Dialed(o.port)); err != nil {
				a.Unknown = printable.Shortened(printable.Error(err), maxReason)
			}
		})
	}
	asking.Wait()
	o.at, o.facts = time.Now(), facts
	return facts
}

// get asks the member at an address. The error is that of the first word without an answer.
func (a *answers) get(ctx context.Context, ask AskFunc, address string) error {
	bounded := func(ctx context.Context, address, word string) (string, error) {
		ctx, cancel := context.WithTimeout(ctx, askTime)
		defer cancel()
		return ask(ctx, address, word)
	}
	state, err := probe.AskState(ctx, bounded, address)
	if err != nil {
		return err
	}
	a.Mode, a.Version, a.Zxid, a.Values = state.Mode, state.Version, state.Zxid.String(), make(map[string]float64)
	for _, w := range []struct {
		word  string
		parse func(string) probe.Monitor
		names []string
	}{{"mntr", probe.ParseMonitor, wanted}, {"dirs", probe.ParseDirs, dirSizes}} {
		text, err := bounded(ctx, address, w.word)
		if err != nil {
			return err
		}
		values := w.parse(text)
		for _, name := range w.names {
			if v, ok := values.Float(name); ok {
				a.Values[name] = v
			}
		}
	}
	return nil
}
