package explore

import (
	"cmp"
	"context"
	"math"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gozkd/gozkd/internal/printable"
	"github.com/gozkd/gozkd/server"
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
	ask  func(ctx context.Context, address, word string) (string, error)
	port int // of members whose server line has none; 0: unknown

	mu    sync.Mutex // guards the fields below, and makes callers wait for the answers
	at    time.Time
	facts map[int]*answers
}

// answers are the answers of a member.
type answers struct {
	Mode    string `json:"mode,omitempty"`
	Version string `json:"version,omitempty"`
	Zxid    string `json:"zxid,omitempty"`
	// Values are numbers of mntr and dirs, of wanted.
	Values map[string]float64 `json:"values,omitempty"`
	// Unknown is why something is missing.
	Unknown string `json:"unknown,omitempty"`
}

// wanted are the values of mntr that are shown for each member.
var wanted = []string{
	"znode_count", "approximate_data_size", "digest_mismatches_count", "p99_gozkd_log_sync_duration_seconds", "num_alive_connections",
	"gozkd_term", "gozkd_applied_index", "gozkd_feature_level", "gozkd_feature_level_max", "gozkd_tls_certificate_expires_seconds",
	"gozkd_archive_lag_seconds", "gozkd_archive_shipper", "gozkd_archive_verified_seconds", "gozkd_archive_verify_failed",
}

// of returns the answers of the members except one, by number. They are at most askEvery old.
func (o *others) of(members []server.MemberStatus, own int) map[int]*answers {
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
		if m.ID == own {
			continue
		}
		a := &answers{}
		facts[m.ID] = a
		asking.Go(func() { a.get(ctx, o.ask, clientAddress(m, o.port)) }) // ends with ctx; awaited below
	}
	asking.Wait()
	o.at, o.facts = time.Now(), facts
	return facts
}

// get asks the member at an address, "" if that is not known.
func (a *answers) get(ctx context.Context, ask func(ctx context.Context, address, word string) (string, error), address string) {
	if address == "" {
		a.Unknown = "its server line has no client port"
		return
	}
	word := func(name string) (lines map[string]string) {
		ctx, cancel := context.WithTimeout(ctx, askTime)
		defer cancel()
		text, err := ask(ctx, address, name)
		if err != nil {
			a.Unknown = printable.Shortened(err.Error(), maxReason)
			return nil
		}
		return linesOf(text)
	}
	take := func(lines map[string]string, prefix string, names ...string) {
		for _, name := range names {
			if v, err := strconv.ParseFloat(lines[prefix+name], 64); err == nil && !math.IsNaN(v) && !math.IsInf(v, 0) {
				a.Values[name] = v
			}
		}
	}
	srvr := word("srvr")
	a.Mode, a.Zxid = srvr["Mode"], srvr["Zxid"]
	a.Version, _, _ = strings.Cut(srvr["Zookeeper version"], ",")
	if srvr == nil {
		return
	}
	if mntr := word("mntr"); mntr != nil {
		a.Values = make(map[string]float64)
		take(mntr, "zk_", wanted...)
		take(word("dirs"), "", "datadir_size", "logdir_size")
	}
}

// linesOf returns the values of an answer by their names.
func linesOf(text string) map[string]string {
	lines := make(map[string]string)
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		name, value, ok := strings.Cut(line, "\t")
		if !ok {
			name, value, ok = strings.Cut(line, ": ")
		}
		if ok {
			lines[name] = value[:min(len(value), maxReason)]
		}
	}
	return lines
}

// clientAddress returns where a member serves clients, "" if that is not known. otherwise is the
// port of a member whose server line has none.
func clientAddress(m server.MemberStatus, otherwise int) string {
	m.ClientAddress = cmp.Or(m.ClientAddress, ":"+strconv.Itoa(otherwise))
	host, port, err := net.SplitHostPort(m.ClientAddress)
	if err != nil || port == "0" {
		return ""
	}
	if ip, err := netip.ParseAddr(host); host == "" || err == nil && ip.IsUnspecified() {
		if host, _, err = net.SplitHostPort(m.PeerAddress); err != nil {
			return ""
		}
	}
	return net.JoinHostPort(host, port)
}
