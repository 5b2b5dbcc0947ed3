// Package zktest runs ZooKeeper servers and ensembles inside a Go test and injects the faults of
// production.
//
//	func TestMine(t *testing.T) {
//		zk := zktest.Start(t)       // a server on a free port, until the end of the test
//		conn := zk.Connect(t)       // a go-zookeeper client with a session
//		zk.Advance(time.Hour)       // an hour has passed
//		zk.DropReply(zktest.Create) // the next create is applied, and its reply is lost
//		...
//	}
//
// A server takes a millisecond or two to start, an ensemble of three about fifty. Any client, in
// this process or another, may connect to ConnectString. docs/guide/testing.md has complete
// examples and a table for users of Curator's TestingServer and TestingCluster.
//
// # Failing
//
// A method that cannot do its work fails the test with the reason; there are no errors to check. In
// a subtest use the server returned by With(t), so that the subtest fails and not its parent. The
// log of a failed test ends with the state of members, sessions and znodes and with the servers'
// log. A test that passes logs nothing.
//
// # Time
//
// In a bubble of testing/synctest everything runs on the bubble's clock. The test kit opens no port
// there, because a goroutine that waits for a socket would stop that clock: clients connect with
// Dialer, as the clients of Connect do. Outside a bubble time is real, and Advance lets time pass
// for the servers.
//
// # Concurrency
//
// All methods may be called from several goroutines, except when a call would end the test: a
// method that fails calls t.FailNow, which only the test's own goroutine may do. Tests with servers
// of their own may run in parallel.
package zktest
