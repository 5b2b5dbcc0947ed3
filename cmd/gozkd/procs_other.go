//go:build !unix

package main

import "time"

// cpuTime: not here, so the process keeps all processors.
func cpuTime() (time.Duration, bool) { return 0, false }
