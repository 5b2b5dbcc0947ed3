package recipes

import "time"

// Contender describes a participant of a recipe, as read from its znode.
type Contender struct {
	Path    string
	Data    []byte    // what the contender stored to describe itself
	Session int64     // 0 if the znode is not ephemeral
	Since   time.Time // creation time by the leader's clock
	Zxid    int64     // of the creation
}

// Contention lists the contenders that hold something and those that wait for it, in the order in
// which they will be served.
type Contention struct{ Holders, Waiters []Contender }
