package proto

// FeaturesPath is where a gozkd server tells what it can do besides ZooKeeper's protocol: getData
// returns [Features] as JSON. No list names the path, and other servers have no such znode. See
// docs/adr/0019-pages-of-children.md.
const FeaturesPath = "/zookeeper/features"

// Features is what a server can do besides ZooKeeper's protocol. Clients must ignore fields that
// they do not know.
type Features struct {
	Server  string            `json:"server"` // "gozkd"
	Version string            `json:"version"`
	Ops     map[string]OpCode `json:"ops"` // further operations, by name
}
