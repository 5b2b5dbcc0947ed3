package main

import (
	"os"
	"os/signal"
)

// takeInterrupts is program.Env's Interrupts: it takes them from the ctx of the command.
func takeInterrupts() (interrupts <-chan os.Signal, stop func()) {
	signal.Reset(os.Interrupt)
	c := make(chan os.Signal, 1) // the newest is enough
	signal.Notify(c, os.Interrupt)
	return c, func() { signal.Stop(c) }
}
