// Package config builds a Config from the command line, zoo.cfg and the environment. It uses
// ZooKeeper's keys, system properties and defaults.
//
// Flags override zoo.cfg, and zoo.cfg overrides the environment: -D properties in JVMFLAGS and
// SERVER_JVMFLAGS, and the variables of ZooKeeper's container images. One table (see keys) defines
// the effect and the valid values of each key; docs/reference/configuration.md shows it. No setting
// is ignored silently: an unknown key gives a warning with its file and line, an invalid value is a
// problem, and Load reports all problems at once.
//
// A row of the table points to the field that the key sets, in server.Config or tlsconf.Options if
// the server or TLS uses it, so that a new key needs a row and the field where it is used. The
// package starts nothing and prints nothing.
package config
