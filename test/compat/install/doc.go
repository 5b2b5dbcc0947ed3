// Package install installs the tools of other projects that make compat needs: Apache ZooKeeper
// from Debian and from Maven, kazoo from PyPI, the C client from Debian, and the programs of
// test/compat/programs.
//
// Each function is idempotent and returns at once if its part is installed. Everything except
// Debian packages goes to .cache/compat below the repository's root. Only the ordinary package
// managers are called, as this machine configures them. Debian packages are installed if the
// process is root; otherwise the error names the command to run. Errors end the program through
// package must.
//
// The functions may run in several processes at once: a result is written to a temporary name and
// then renamed.
package install
