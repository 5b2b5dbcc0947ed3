// Package rawclient is a client of the ZooKeeper protocol for tests and load. It sends exactly the
// given bytes, well-formed or not, any number of requests in one segment, and returns frames in the
// order of arrival.
//
// The client keeps no session alive, restores no watches, and does not match replies to requests.
package rawclient
