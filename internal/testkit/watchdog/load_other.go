//go:build !linux

package watchdog

// systemLoad returns a guess: the standard library does not tell the load here.
func systemLoad() float64 { return unknownLoad }
