// Package archtest holds rules about the module's source that no linter knows, as tests: which
// package may import which and why, what pure packages must not reach for, and habits such as the
// comment above a go statement. It has no code of its own.
//
// Every rule is a function from parsed source to findings, and has a test that shows it finding
// something: a rule that can't fail protects nothing.
package archtest
