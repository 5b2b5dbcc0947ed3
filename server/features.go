package server

import (
	"encoding/json"

	"github.com/gozkd/gozkd/proto"
)

// features returns what proto.FeaturesPath holds.
func (s *state) features() []byte {
	ops := map[string]proto.OpCode{proto.OpListPage.String(): proto.OpListPage}
	data, _ := json.Marshal(proto.Features{Server: "gozkd", Version: Version, Ops: ops}) // cannot fail
	return data
}
