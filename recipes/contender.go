package recipes

import "time"

// Contender is one who takes part in a recipe, as seen from outside.
type Contender struct {
	Path    string
	Data    []byte    // what the contender says of itself
	Session int64     // 0: the znode is no ephemeral
	Since   time.Time // by the leader's clock
	Zxid    int64     // that created the znode
}

// Line is who has it and who waits for it, the next one first.
type Contention struct{ Holders, Waiters []Contender }
