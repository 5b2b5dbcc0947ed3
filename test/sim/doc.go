// Package sim runs ensembles of whole servers in virtual time: connections, pipeline, sessions,
// watches, tree, log, checkpoints and membership are the shipped code, on disks that crash and on a
// network in memory. The clients, their loads and the checks are those of test/jepsen-lite.
//
// A run is one bubble of testing/synctest, and its plan is drawn from one seed. What is simulated,
// and what is not, stands in docs/quality/how-we-test.md. The package has only tests.
package sim
