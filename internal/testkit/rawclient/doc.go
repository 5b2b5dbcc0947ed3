// Package rawclient is a client of the ZooKeeper protocol that hides nothing: it sends the bytes it
// is told to, well formed or not, as many requests in one segment as the caller likes, and hands
// back frames in the order of arrival.
//
// It is for tests and load only. It keeps no session alive, sets no watches again, and matches no
// replies to requests.
package rawclient
