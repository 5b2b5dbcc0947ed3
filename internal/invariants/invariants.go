// Package invariants enables checks that are too slow for production. Build with -tags invariants.
package invariants
