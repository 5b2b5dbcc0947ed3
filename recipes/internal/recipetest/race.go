//go:build race

package recipetest

const raceDetector = true
