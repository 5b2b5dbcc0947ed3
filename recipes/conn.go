package recipes

import (
	"time"

	"github.com/go-zookeeper/zk"
)

// Conn has the methods of *zk.Conn that recipes use.
//
// A call blocks until the server answers or the connection gives up on the request. Its error is a
// sentinel of package zk or an error of the network. Safe for concurrent use.
type Conn interface {
	Create(path string, data []byte, flags int32, acl []zk.ACL) (string, error)
	CreateContainer(path string, data []byte, flag int32, acl []zk.ACL) (string, error)
	CreateTTL(path string, data []byte, flag int32, acl []zk.ACL, ttl time.Duration) (string, error)
	Delete(path string, version int32) error
	Set(path string, data []byte, version int32) (*zk.Stat, error)
	Get(path string) ([]byte, *zk.Stat, error)
	GetW(path string) ([]byte, *zk.Stat, <-chan zk.Event, error)
	Exists(path string) (bool, *zk.Stat, error)
	ExistsW(path string) (bool, *zk.Stat, <-chan zk.Event, error)
	Children(path string) ([]string, *zk.Stat, error)
	ChildrenW(path string) ([]string, *zk.Stat, <-chan zk.Event, error)
	Multi(ops ...any) ([]zk.MultiResponse, error)
	Sync(path string) (string, error)

	AddAuth(scheme string, auth []byte) error
	SessionID() int64
	State() zk.State
	Server() string
}

var _ Conn = (*zk.Conn)(nil)
