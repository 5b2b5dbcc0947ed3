package server

import (
	"encoding/json"

	"github.com/gozkd/gozkd/proto"
)

func (s *state) features() []byte {
	ops := map[string]proto.OpCode{proto.OpListPage.String(): proto.OpListPage}
	f := proto.Features{Server: "gozkd", Version: Version, Ops: ops}
	if s.history.Limit > 0 {
		f.WatchReplay = proto.ReplayMark
	}
	data, _ := json.Marshal(f) // cannot fail
	return data
}
