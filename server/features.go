package server

import (
	"encoding/json"

	"github.com/gozkd/gozkd/proto"
)

// features returns what proto.FeaturesPath holds.
func (s *state) features() []byte {
	data, _ := json.Marshal(proto.Features{Server: "gozkd", Version: Version, Ops: map[string]proto.OpCode{}}) // cannot fail
	return data
}
