package top

import (
	"math"
	"time"

	"github.com/gozkd/gozkd/internal/probe"
	"github.com/gozkd/gozkd/server/facts"
)

// panel is the content of the lower part of the screen.
type panel int

const (
	clientsPanel panel = iota
	hotPanel
	trendsPanel
	panels // number of panels
)

var panelNames = [panels]string{"clients", "hot", "trends"}

// model is the state of the screen. Its methods are pure, except that a key calls refresh.
type model struct {
	ensemble      ensemble
	theme         theme
	interval      time.Duration
	width, height int

	panel    panel
	sortBy   int  // index in clientColumns
	reversed bool // reverses clientColumn.compare
	scroll   int  // lines of the panel above the visible ones
	paused   bool
	help     bool

	// refresh starts a round now.
	refresh func()
}

func newModel(th theme, interval time.Duration) *model {
	return &model{theme: th, interval: interval, refresh: func() {}, width: 80, height: 24}
}

// observe shows a Report. While paused, reports are dropped; the next rates cover the whole pause.
func (m *model) observe(r Report) {
	if !m.paused {
		m.ensemble.observe(r)
	}
}

// key handles a key and reports whether it ends the program.
func (m *model) key(key string) (quits bool) {
	if m.help { // any key closes the help
		m.help = false
		return key == "q" || key == "ctrl+c"
	}
	columns := len(clientColumns(time.Time{}))
	page := max(1, m.height/2)
	switch key {
	case "q", "ctrl+c":
		return true
	case "?", "h":
		m.help = true
	case "p":
		m.paused = !m.paused
	case "space", "f5":
		m.refresh()
	case "1", "2", "3":
		m.show(panel(key[0] - '1'))
	case "tab":
		m.show((m.panel + 1) % panels)
	case "shift+tab":
		m.show((m.panel + panels - 1) % panels)
	case "s", ">":
		m.sortBy = (m.sortBy + 1) % columns
	case "S", "<":
		m.sortBy = (m.sortBy + columns - 1) % columns
	case "r":
		m.reversed = !m.reversed
	case "down", "j":
		m.scroll++
	case "up", "k":
		m.scroll--
	case "pgdown", "ctrl+f":
		m.scroll += page
	case "pgup", "ctrl+b":
		m.scroll -= page
	case "home", "g":
		m.scroll = 0
	case "end", "G":
		m.scroll = math.MaxInt // the last line, see below
	}
	m.scroll = max(0, min(m.scroll, m.panelLength()-1))
	return false
}

func (m *model) show(p panel) {
	if m.panel != p {
		m.panel, m.scroll = p, 0
	}
}

// Sample is the result of asking one member once.
type Sample struct {
	// Address is the address of the Entry.
	Address string
	// At is when srvr was answered or failed.
	At time.Time
	// Asked is how many words this process has asked the member; each counts as a packet.
	Asked int64
	// Err is why the member is down or does not serve. The other fields are empty then.
	Err   error
	State probe.State

	Monitor    probe.Monitor
	MonitorErr error
	// Clients are the connections with a session.
	Clients    []probe.Connection
	ClientsErr error
	Hot        facts.HotSpots
	HotErr     error
}

// Entry is a server to watch.
type Entry struct {
	Address string
	// ID is that of package memberid; 0: it is unknown, or the server is standalone.
	ID uint64
}

// Report is a sample and the roster after it.
type Report struct {
	Sample Sample
	Roster []Entry
}
