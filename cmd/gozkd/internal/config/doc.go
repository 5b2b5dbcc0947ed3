// Package config builds a Config from the command line, zoo.cfg and the environment. It uses
// ZooKeeper's keys, system properties and defaults.
//
// Flags override zoo.cfg, and zoo.cfg overrides the environment: -D properties in JVMFLAGS and
// SERVER_JVMFLAGS, and the variables of ZooKeeper's container images. One table (see keys) defines
// the effect and the valid values of each key; docs/reference/configuration.md shows it. No setting
// is ignored silently: an unknown key gives a warning with its file and line, an invalid value is a
// problem, and Load reports all problems at once.
//
// The package starts nothing and prints nothing. It does not import the server: cmd/gozkd
// translates a Config.
package config
