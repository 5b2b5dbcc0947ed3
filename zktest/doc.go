// Package zktest runs ZooKeeper servers and ensembles inside a Go test, and does to them what production will.
//
//	func TestMine(t *testing.T) {
//		zk := zktest.Start(t)                       // a server, on a free port, gone with the test
//		conn := zk.Connect(t)                       // a go-zookeeper client with a session
//		zk.Advance(time.Hour)                       // an hour has passed
//		zk.DropReply(zktest.Create)                 // the next create is applied, and its answer is lost
//		...
//	}
//
// A server takes a millisecond or two to start, an ensemble of three some fifty. Any client may connect to ConnectString, in
// this process or another. docs/guide/testing.md has complete examples, and what each method of Curator's TestingServer and
// TestingCluster is called here.
//
// # Failing
//
// What can't be done fails the test, with the reason: there is no error to be checked. In a subtest use the server through
// With(t), so that the subtest fails and not its parent. When a test has failed, its log shows at the end how things were
// (members, sessions, znodes) and what the servers logged. A test that passes shows nothing.
//
// # Time
//
// Inside a bubble of testing/synctest everything runs on the bubble's time. There no port is opened, since who waits for a
// socket keeps the time of a bubble from passing: clients connect with Dialer, as those of Connect do. Outside, time is real,
// and Advance lets it pass for the servers.
//
// # Concurrency
//
// All methods may be called from several goroutines, except where one would end the test: those that can't do what they are
// asked for call t.FailNow, which is for the test's own goroutine. Tests with servers of their own may run in parallel.
package zktest
