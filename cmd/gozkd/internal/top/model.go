package top

import (
	"time"

	tea "charm.land/bubbletea/v2"
)

// panel is what the lower part of the screen shows.
type panel int

const (
	clientsPanel panel = iota
	hotPanel
	trendsPanel
	panels // how many there are
)

var panelNames = [panels]string{"clients", "hot", "trends"}

// model is the screen: what is shown, and how. Update and View are pure but for refresh, which a key calls.
type model struct {
	ensemble      ensemble
	theme         theme
	interval      time.Duration
	width, height int

	panel    panel
	sortBy   int  // of clientColumns
	reversed bool // the other way round than clientColumn.compare has it
	scroll   int  // lines of the panel above its first
	paused   bool
	help     bool

	// refresh begins a round of questions now.
	refresh func()
}

func newModel(th theme, interval time.Duration, refresh func()) *model {
	return &model{theme: th, interval: interval, refresh: refresh, width: 80, height: 24}
}

// Init has nothing to start: the watcher is started by Main.
func (m *model) Init() tea.Cmd { return nil }

// Update takes in a key, the size of the terminal, or a Report.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case tea.KeyPressMsg:
		if quits := m.key(msg.String()); quits {
			return m, tea.Quit
		}
	case Report:
		// While it is paused nothing is taken in; the rates after it are then those of the whole pause.
		if !m.paused {
			m.ensemble.observe(msg)
		}
	}
	return m, nil
}

// key does what a key is for, and reports whether it ends the program.
func (m *model) key(key string) (quits bool) {
	if m.help { // any key leaves the help
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
		m.scroll = maxScroll
	}
	m.scroll = max(0, min(m.scroll, m.panelLength()-1))
	return false
}

// maxScroll is farther than any panel goes.
const maxScroll = 1 << 30

func (m *model) show(p panel) {
	if m.panel != p {
		m.panel, m.scroll = p, 0
	}
}

// View draws the screen.
func (m *model) View() tea.View {
	v := tea.NewView(m.screen())
	v.AltScreen = true
	v.WindowTitle = "gozkd top"
	return v
}
