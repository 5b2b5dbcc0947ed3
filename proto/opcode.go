package proto

// OpCode is the number of an operation, in the header of a request. [OpCode.Info] describes the
// operation.
type OpCode int32

// The op codes of the protocol. Each has a row in the table of operations, ops.go. Source:
// ZooKeeper's ZooDefs.OpCode.
const (
	OpNotification         OpCode = 0
	OpCreate               OpCode = 1
	OpDelete               OpCode = 2
	OpExists               OpCode = 3
	OpGetData              OpCode = 4
	OpSetData              OpCode = 5
	OpGetACL               OpCode = 6
	OpSetACL               OpCode = 7
	OpGetChildren          OpCode = 8
	OpSync                 OpCode = 9
	OpPing                 OpCode = 11
	OpGetChildren2         OpCode = 12
	OpCheck                OpCode = 13
	OpMulti                OpCode = 14
	OpCreate2              OpCode = 15
	OpReconfig             OpCode = 16
	OpCheckWatches         OpCode = 17
	OpRemoveWatches        OpCode = 18
	OpCreateContainer      OpCode = 19
	OpDeleteContainer      OpCode = 20
	OpCreateTTL            OpCode = 21
	OpMultiRead            OpCode = 22
	OpAuth                 OpCode = 100
	OpSetWatches           OpCode = 101
	OpSASL                 OpCode = 102
	OpGetEphemerals        OpCode = 103
	OpGetAllChildrenNumber OpCode = 104
	OpSetWatches2          OpCode = 105
	OpAddWatch             OpCode = 106
	OpWhoAmI               OpCode = 107
	OpListPage             OpCode = 2601 // not ZooKeeper's, see Features
	OpCreateSession        OpCode = -10
	OpCloseSession         OpCode = -11
	OpError                OpCode = -1
)

// These op codes appear only in the log, never on a client's connection.
const (
	OpReattachSession OpCode = -20 // a client resumed its session on a new connection
	OpExpireSession   OpCode = -21 // the leader heard nothing from a session for its timeout
	// The membership change of a reconfig completed, or cannot complete.
	OpConfigDone OpCode = -22
	OpInitConfig OpCode = -23 // the initial members of an ensemble
	OpSetLimit   OpCode = -24 // how large the state may become
)
