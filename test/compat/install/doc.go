// Package install puts the tools of other people that make compat needs onto this machine: Apache ZooKeeper from
// Debian and from Maven, kazoo from PyPI, and the C client from Debian.
//
// Each function is idempotent and returns at once when its part is there. Everything except Debian packages goes to
// .cache/compat under the repository's root. Only the ordinary package managers are called, as this machine configures
// them; nothing here names a registry. Debian packages are installed when the process is root; otherwise the error
// says which command would do it.
//
// The functions may run in several processes at once: results are written beside their place and renamed into it.
package install
