package watchdog

import (
	"os"
	"runtime"
	"strconv"
	"strings"
)

// systemLoad returns the number of runnable threads per CPU: the average of the last minute or the
// present number, whichever is greater.
func systemLoad() float64 {
	text, err := os.ReadFile("/proc/loadavg") // such as "0.20 0.18 0.12 1/80 11206"
	if err != nil {
		return unknownLoad
	}
	return parseLoad(string(text)) / float64(runtime.NumCPU())
}

func parseLoad(text string) float64 {
	fields := strings.Fields(text)
	if len(fields) < 4 {
		return unknownLoad
	}
	average, err1 := strconv.ParseFloat(fields[0], 64)
	running, _, _ := strings.Cut(fields[3], "/")
	now, err2 := strconv.ParseFloat(running, 64)
	if err1 != nil || err2 != nil {
		return unknownLoad
	}
	return max(average, now)
}
