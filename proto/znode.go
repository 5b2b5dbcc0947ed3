package proto

// Znode is a znode at one moment. Data and ACL are shared and must not be changed.
type Znode struct {
	Path  string
	Data  []byte // nil: null, which differs from empty
	Stat  Stat
	ACL   []ACL
	Mode  CreateMode // how to create such a znode: persistent, ephemeral, container or TTL
	TTLMs int64      // ModePersistentTTL only: the time to live in milliseconds
}
