// Package backup is `gozkd backup`, `gozkd restore` and `gozkd inspect`: a state is copied, and a new ensemble begins with it. What a
// restore makes of a state, and why that is safe, is in docs/adr/0003-restore-founds-a-new-ensemble.md; how an operator uses it in docs/guide/operate.md.
//
// A backup is a checkpoint file: the state of one moment, as a bbolt file with the layout of docs/reference/formats.md. A state is taken from
//
//   - such a file, also a plain copy of a stopped server's checkpoint.db,
//   - the data directory of a stopped server, with all of its log,
//   - the admin endpoint of a running server.
//
// No source is ever changed, and no file or directory that holds anything is written to.
package backup
