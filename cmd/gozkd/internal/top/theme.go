package top

import "charm.land/lipgloss/v2"

// theme holds the styles. The zero value is plain text.
type theme struct {
	title, heading, dim, good, bad, warn, leader, trend, key lipgloss.Style
}

// colors returns the theme for a terminal, in the sixteen colors that its user has configured. The
// output writer removes what the terminal or NO_COLOR does not allow.
func colors() theme {
	s := lipgloss.NewStyle
	return theme{
		title:   s().Bold(true),
		heading: s().Reverse(true),
		dim:     s().Faint(true),
		good:    s().Foreground(lipgloss.Green),
		bad:     s().Foreground(lipgloss.Red).Bold(true),
		warn:    s().Foreground(lipgloss.Yellow),
		leader:  s().Foreground(lipgloss.Green).Bold(true),
		trend:   s().Foreground(lipgloss.Cyan),
		key:     s().Bold(true),
	}
}
