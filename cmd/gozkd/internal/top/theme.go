package top

import "charm.land/lipgloss/v2"

// theme is how things look. The zero value is plain text.
type theme struct {
	title, heading, dim, good, bad, warn, leader, trend, key lipgloss.Style
}

// colors is the theme of a terminal, in the sixteen colors that its user has chosen. What a terminal can't show, or NO_COLOR forbids, is taken
// away on the way to it.
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
