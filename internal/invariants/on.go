//go:build invariants

package invariants

// Enabled is a constant, so that the compiler removes disabled checks.
const Enabled = true
