// Package backup implements `gozkd backup` and `gozkd restore`, and describes data directories for
// `gozkd inspect`. They copy a state, and start a new ensemble from a copy.
// docs/adr/0003-restore-founds-a-new-ensemble.md says what a restore changes in a state and why
// that is safe; docs/guide/operate.md is for operators.
//
// A backup is a checkpoint file: the state at a moment in bbolt's format, with the layout of
// docs/reference/formats.md. The source of a state is
//
//   - such a file, for example a plain copy of a stopped server's checkpoint.db,
//   - the data directory of a stopped server, including all of its log,
//   - the admin endpoint of a running server.
//
// A source is never changed, and a file or directory with data is never written to.
package backup
