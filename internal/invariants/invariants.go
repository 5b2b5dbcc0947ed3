// Package invariants switches on checks that are too slow for production: build with -tags invariants.
package invariants
