//go:build race

package zktest_test

const raceEnabled = true
