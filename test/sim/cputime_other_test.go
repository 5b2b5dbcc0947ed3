//go:build !unix

package sim

import "time"

var processStart = time.Now()

// cpuTime returns the time since the start of this process.
func cpuTime() time.Duration { return time.Since(processStart) }
