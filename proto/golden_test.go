package proto_test

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
)

// stat has another number in every field.
var stat = proto.Stat{
	Czxid: 1, Mzxid: 2, CtimeMs: 3, MtimeMs: 4, Version: 5, Cversion: 6, Aversion: 7, EphemeralOwner: 8, DataLength: 9, NumChildren: 10, Pzxid: 11,
}

const statHex = `0000000000000001 0000000000000002 0000000000000003 0000000000000004
	00000005 00000006 00000007 0000000000000008 00000009 0000000a 000000000000000b`

const openHex = "00000001 0000001f 00000005 776f726c64 00000006 616e796f6e65" // [31 world anyone]

func passwd() []byte { return []byte("0123456789abcdef") }

const passwdHex = "00000010 30313233343536373839616263646566"

// TestGolden pins the layout of the records byte by byte. The bytes are written by hand from the
// description of the protocol.
func TestGolden(t *testing.T) {
	request := proto.ConnectRequest{LastZxidSeen: 0x100000002, TimeoutMs: 10_000, SessionID: 0x100000ee8f200b8, Passwd: passwd()}
	response := proto.ConnectResponse{TimeoutMs: 10_000, SessionID: 0x100000ee8f200b8, Passwd: passwd()}
	withFlag, answerFlag := request, response
	withFlag.HasReadOnly, withFlag.ReadOnly, answerFlag.HasReadOnly = true, true, true
	path := "/a"
	create := proto.CreateRequest{Path: "/a", Data: []byte{1, 2}, ACL: proto.OpenACL(), Mode: proto.ModePersistentTTL, TTL: 5}

	for _, tc := range []struct {
		name  string
		rec   record
		bytes int // 0: the length of want
		want  string
	}{
		{"connect request", &request, 44, "00000000 0000000100000002 00002710 0100000ee8f200b8" + passwdHex},
		{"connect request with the read-only byte", &withFlag, 45, "00000000 0000000100000002 00002710 0100000ee8f200b8" + passwdHex + "01"},
		{"connect response", &response, 36, "00000000 00002710 0100000ee8f200b8" + passwdHex},
		{"connect response with the read-only byte", &answerFlag, 37, "00000000 00002710 0100000ee8f200b8" + passwdHex + "00"},
		{"connect response, refused", &proto.ConnectResponse{Passwd: make([]byte, 16)}, 36, "00000000 00000000 0000000000000000 00000010" + strings.Repeat("00", 16)},
		{"request header", &proto.RequestHeader{Xid: -8, Op: proto.OpSetWatches}, proto.RequestHeaderBytes, "fffffff8 00000065"},
		{"reply header", &proto.ReplyHeader{Xid: 3, Zxid: -1, Err: proto.ErrUnimplemented}, proto.ReplyHeaderBytes, "00000003 ffffffffffffffff fffffffa"},
		{"stat", &stat, proto.StatBytes, statHex},
		{"event", &proto.WatcherEvent{Type: proto.EventChildrenChanged, State: proto.StateConnected, Path: "/a"}, 14, "00000004 00000003 00000002 2f61"},
		{"create", withOp{&create, proto.OpCreate}, 0, "00000002 2f61 00000002 0102" + openHex + "00000005"},
		{"create with nulls", withOp{&proto.CreateRequest{}, proto.OpCreate2}, 0, "00000000 ffffffff ffffffff 00000000"},
		{"createTTL", withOp{&create, proto.OpCreateTTL}, 0, "00000002 2f61 00000002 0102" + openHex + "00000005 0000000000000005"},
		{"create response", withOp{&proto.CreateResponse{Path: "/a", Stat: stat}, proto.OpCreate}, 0, "00000002 2f61"},
		{"create2 response", withOp{&proto.CreateResponse{Path: "/a", Stat: stat}, proto.OpCreate2}, 0, "00000002 2f61" + statHex},
		{"delete", &proto.PathVersionRequest{Path: "/a", Version: -1}, 0, "00000002 2f61 ffffffff"},
		{"getData", &proto.PathWatchRequest{Path: "/a", Watch: true}, 0, "00000002 2f61 01"},
		{"getData response", &proto.DataResponse{Data: []byte{}, Stat: stat}, 0, "00000000" + statHex},
		{"getData response, null", &proto.DataResponse{Stat: stat}, 0, "ffffffff" + statHex},
		{"setData", &proto.SetDataRequest{Path: "/a", Data: []byte{7}, Version: 2}, 0, "00000002 2f61 00000001 07 00000002"},
		{"setACL", &proto.SetACLRequest{Path: "/a", ACL: proto.OpenACL(), Version: 2}, 0, "00000002 2f61" + openHex + "00000002"},
		{"getACL response", &proto.ACLResponse{ACL: proto.OpenACL(), Stat: stat}, 0, openHex + statHex},
		{"getChildren response", withOp{&proto.ChildrenResponse{Children: []string{"b", ""}, Stat: stat}, proto.OpGetChildren}, 0, "00000002 00000001 62 00000000"},
		{"getChildren2 response", withOp{&proto.ChildrenResponse{Children: []string{}, Stat: stat}, proto.OpGetChildren2}, 0, "00000000" + statHex},
		{"sync", &proto.PathRequest{Path: &path}, 0, "00000002 2f61"},
		{"sync, null", &proto.PathRequest{}, 0, "ffffffff"},
		{"auth", &proto.AuthRequest{Scheme: "digest", Auth: []byte("a:b")}, 0, "00000000 00000006 646967657374 00000003 613a62"},
		{"setWatches", withOp{&proto.SetWatchesRequest{RelativeZxid: 9, Data: []string{"/a"}, Exist: []string{}}, proto.OpSetWatches}, 0, "0000000000000009 00000001 00000002 2f61 00000000 ffffffff"},
		{"setWatches2", withOp{&proto.SetWatchesRequest{PersistentRecursive: []string{"/"}}, proto.OpSetWatches2}, 0, "0000000000000000 ffffffff ffffffff ffffffff ffffffff 00000001 00000001 2f"},
		{"addWatch", &proto.AddWatchRequest{Path: "/a", Mode: proto.AddWatchPersistentRecursive}, 0, "00000002 2f61 00000001"},
		{"removeWatches", &proto.WatchesRequest{Path: "/a", Type: proto.WatcherAny}, 0, "00000002 2f61 00000003"},
		{"addWatch response", &proto.IntResponse{}, 4, "00000000"},
		{"whoAmI response", &proto.WhoAmIResponse{IDs: []proto.ID{{Scheme: "ip", ID: "::1"}}}, 0, "00000001 00000002 6970 00000003 3a3a31"},
		{"listPage", &proto.ListPageRequest{Path: "/a", StartAfter: "b", Limit: 5, MaxBytes: 6, Flags: proto.PageData | proto.PageEphemeral}, 0, "00000002 2f61 00000001 62 00000005 00000006 00000006"},
		{"listPage response", pageRecord{&proto.ListPageResponse{Entries: []proto.PageEntry{{Name: "b"}, {Name: ""}}, Next: &path, Parent: stat}, proto.PagePersistent}, 0, "00000002 00000001 62 00000000 00000002 2f61" + statHex},
		{"listPage response, full", pageRecord{&proto.ListPageResponse{Entries: []proto.PageEntry{{Name: "b", Stat: stat, Data: []byte{7}}, {Name: "c", Err: proto.ErrNoAuth}}, Parent: stat}, fullFlags}, 0,
			"00000002 00000001 62 00000000" + statHex + "00000001 07 00000001 63 ffffff9a ffffffff" + statHex},
		{"reconfig", &proto.ReconfigRequest{NewMembers: &path, ConfigID: -1}, 0, "ffffffff ffffffff 00000002 2f61 ffffffffffffffff"},
		{"empty multi", multiRequest{&proto.MultiRequest{}, proto.OpMulti, new(error)}, 9, "ffffffff 01 ffffffff"},
		{"multi", multiRequest{&proto.MultiRequest{Ops: []proto.MultiOp{
			{Op: proto.OpCheck, Path: "/a", Version: 2},
			{Op: proto.OpCreate, Path: "/b", ACL: proto.OpenACL()},
			{Op: proto.OpCreateTTL, Path: "/c", Mode: proto.ModePersistentTTL, TTL: 5},
			{Op: proto.OpSetData, Path: "/a", Data: []byte{7}, Version: -1},
			{Op: proto.OpDelete, Path: "/a", Version: -1},
		}}, proto.OpMulti, new(error)}, 0, `0000000d 00 ffffffff 00000002 2f61 00000002
			00000001 00 ffffffff 00000002 2f62 ffffffff` + openHex + `00000000
			00000015 00 ffffffff 00000002 2f63 ffffffff ffffffff 00000005 0000000000000005
			00000005 00 ffffffff 00000002 2f61 00000001 07 ffffffff
			00000002 00 ffffffff 00000002 2f61 ffffffff
			ffffffff 01 ffffffff`},
		{"multi response", multiResponse{&proto.MultiResponse{Results: []proto.MultiResult{
			{Op: proto.OpCheck}, {Op: proto.OpCreate, Path: "/b"}, {Op: proto.OpCreate2, Path: "/c", Stat: stat}, {Op: proto.OpSetData, Stat: stat}, {Op: proto.OpDelete},
		}}, new(error)}, 0, `0000000d 00 00000000
			00000001 00 00000000 00000002 2f62
			0000000f 00 00000000 00000002 2f63` + statHex + `
			00000005 00 00000000` + statHex + `
			00000002 00 00000000
			ffffffff 01 ffffffff`},
		{"failed multi", multiResponse{&proto.MultiResponse{Results: []proto.MultiResult{
			{Op: proto.OpError}, {Op: proto.OpError, Err: proto.ErrNoNode}, {Op: proto.OpError, Err: proto.ErrRuntimeInconsistency},
		}}, new(error)}, 0, `ffffffff 00 00000000 00000000
			ffffffff 00 ffffff9b ffffff9b
			ffffffff 00 fffffffe fffffffe
			ffffffff 01 ffffffff`},
		{"multiRead response", multiResponse{&proto.MultiResponse{Results: []proto.MultiResult{
			{Op: proto.OpGetData, Data: []byte{7}, Stat: stat}, {Op: proto.OpGetChildren, Children: []string{"b"}}, {Op: proto.OpError, Err: proto.ErrNoAuth},
		}}, new(error)}, 0, `00000004 00 00000000 00000001 07` + statHex + `
			00000008 00 00000000 00000001 00000001 62
			ffffffff 00 ffffff9a ffffff9a
			ffffffff 01 ffffffff`},
	} {
		got := hex.EncodeToString(tc.rec.Append(nil))
		if want := strings.Join(strings.Fields(tc.want), ""); got != want {
			t.Errorf("%s:\n got %s\nwant %s", tc.name, got, want)
		}
		if tc.bytes != 0 && len(got) != 2*tc.bytes {
			t.Errorf("%s: %d bytes, want %d", tc.name, len(got)/2, tc.bytes)
		}
	}
}

// TestMultiRequest_Terminator: the server reads until done is true, whatever the rest of that
// header is.
func TestMultiRequest_Terminator(t *testing.T) {
	d := jute.NewDecoder([]byte{0, 0, 0, 1, 1, 0, 0, 0, 0})
	var r proto.MultiRequest
	if err := r.Decode(&d, proto.OpMulti); err != nil || len(r.Ops) != 0 || d.Remaining() != 0 {
		t.Fatalf("got %+v, %v, want an empty multi", r, err)
	}
}
