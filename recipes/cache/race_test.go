//go:build race

package cache_test

func init() { raceDetector = true }
