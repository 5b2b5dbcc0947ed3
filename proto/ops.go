package proto

import (
	"cmp"
	"iter"
	"strconv"
)

// OpInfo describes an operation. It is a row of the table of operations, from which all other
// packages derive their lists of operations.
type OpInfo struct {
	Code   OpCode
	Name   string // ZooKeeper's name; also the name in metrics and logs
	Abbrev string // ZooKeeper's abbreviation in the four-letter word cons; empty if there is none
	// Group is the operation as a program sees it: the four op codes that create a znode form the
	// group "create". It is empty for an operation that is not a request of its own.
	Group string
	Class OpClass
	Path  PathField
	Write bool // becomes an entry of the log, which every member applies
	// Session marks operations on the session or the connection instead of znodes.
	Session bool
	// Automatic marks requests that client libraries send without a call by the program.
	Automatic bool

	index int // place in the table
}

// OpClass says how a server handles a client's request, and with that what the request costs.
type OpClass uint8

// The classes of operations.
const (
	// Not a request of a client: unimplemented, and the connection closes.
	ClassNone OpClass = iota
	// Uses this server alone; the cost is bounded by the sizes of request and reply.
	ClassRead
	// Uses this server alone; a short request can cost a lot, so it runs with nothing queued.
	ClassBulkRead
	ClassWrite // proposed to the ensemble
	// Proposed too, with nothing queued before and nothing but pings answered meanwhile.
	ClassReconfig
	ClassSync     // waits until this server has caught up with the leader
	ClassAuth     // changes the identities of the connection
	ClassSASL     // answered with an empty token
	ClassInternal // only the server itself may: refused with ErrBadArguments
)

// PathField says where the body of a request holds paths.
type PathField uint8

// The places of paths in a request.
const (
	PathNone   PathField = iota // no path, or lists of paths that belong to no single znode
	PathFirst                   // the first field is the path of a znode
	PathPrefix                  // the first field is a prefix of paths
	PathEach                    // a MultiRequest: each of its operations has a path
)

// ops is the table of operations, in the order of their numbers.
var ops = [...]OpInfo{
	{Code: OpSetLimit, Name: "setLimit", Write: true},
	{Code: OpInitConfig, Name: "initConfig", Write: true},
	{Code: OpConfigDone, Name: "configDone", Write: true},
	{Code: OpExpireSession, Name: "expireSession", Write: true, Session: true},
	{Code: OpReattachSession, Name: "reattachSession", Write: true, Session: true},
	{Code: OpCloseSession, Name: "closeSession", Abbrev: "CLOS", Group: "close", Class: ClassWrite, Write: true, Session: true, Automatic: true},
	{Code: OpCreateSession, Name: "createSession", Abbrev: "SESS", Write: true, Session: true},
	{Code: OpError, Name: "error"},
	{Code: OpNotification, Name: "notification"},
	{Code: OpCreate, Name: "create", Abbrev: "CREA", Group: "create", Class: ClassWrite, Path: PathFirst, Write: true},
	{Code: OpDelete, Name: "delete", Abbrev: "DELE", Group: "delete", Class: ClassWrite, Path: PathFirst, Write: true},
	{Code: OpExists, Name: "exists", Abbrev: "EXIS", Group: "exists", Class: ClassRead, Path: PathFirst},
	{Code: OpGetData, Name: "getData", Abbrev: "GETD", Group: "get", Class: ClassRead, Path: PathFirst},
	{Code: OpSetData, Name: "setData", Abbrev: "SETD", Group: "set", Class: ClassWrite, Path: PathFirst, Write: true},
	{Code: OpGetACL, Name: "getACL", Abbrev: "GETA", Group: "getACL", Class: ClassRead, Path: PathFirst},
	{Code: OpSetACL, Name: "setACL", Abbrev: "SETA", Group: "setACL", Class: ClassWrite, Path: PathFirst, Write: true},
	{Code: OpGetChildren, Name: "getChildren", Abbrev: "GETC", Group: "children", Class: ClassRead, Path: PathFirst},
	{Code: OpSync, Name: "sync", Abbrev: "SYNC", Group: "sync", Class: ClassSync, Path: PathFirst},
	{Code: OpPing, Name: "ping", Abbrev: "PING", Group: "ping", Class: ClassRead, Session: true, Automatic: true},
	{Code: OpGetChildren2, Name: "getChildren2", Abbrev: "GETC", Group: "children", Class: ClassRead, Path: PathFirst},
	{Code: OpCheck, Name: "check", Path: PathFirst},
	{Code: OpMulti, Name: "multi", Abbrev: "MULT", Group: "multi", Class: ClassWrite, Path: PathEach, Write: true},
	{Code: OpCreate2, Name: "create2", Abbrev: "CREA", Group: "create", Class: ClassWrite, Path: PathFirst, Write: true},
	{Code: OpReconfig, Name: "reconfig", Abbrev: "RECO", Group: "reconfig", Class: ClassReconfig, Write: true},
	{Code: OpCheckWatches, Name: "checkWatches", Abbrev: "CHKW", Group: "watch", Class: ClassRead, Path: PathFirst},
	{Code: OpRemoveWatches, Name: "removeWatches", Abbrev: "REMW", Group: "watch", Class: ClassRead, Path: PathFirst},
	{Code: OpCreateContainer, Name: "createContainer", Abbrev: "CREA", Group: "create", Class: ClassWrite, Path: PathFirst, Write: true},
	{Code: OpDeleteContainer, Name: "deleteContainer", Abbrev: "DELE", Group: "delete", Class: ClassInternal, Path: PathFirst, Write: true},
	{Code: OpCreateTTL, Name: "createTTL", Abbrev: "CREA", Group: "create", Class: ClassWrite, Path: PathFirst, Write: true},
	{Code: OpMultiRead, Name: "multiRead", Abbrev: "MLTR", Group: "multi", Class: ClassBulkRead, Path: PathEach},
	{Code: OpAuth, Name: "auth", Group: "auth", Class: ClassAuth, Session: true, Automatic: true},
	{Code: OpSetWatches, Name: "setWatches", Abbrev: "SETW", Group: "watch", Class: ClassBulkRead, Automatic: true},
	{Code: OpSASL, Name: "sasl", Group: "sasl", Class: ClassSASL, Session: true, Automatic: true},
	{Code: OpGetEphemerals, Name: "getEphemerals", Abbrev: "GETE", Group: "ephemerals", Class: ClassBulkRead, Path: PathPrefix},
	{Code: OpGetAllChildrenNumber, Name: "getAllChildrenNumber", Abbrev: "GETACN", Group: "childrenCount", Class: ClassBulkRead, Path: PathFirst},
	{Code: OpSetWatches2, Name: "setWatches2", Abbrev: "STW2", Group: "watch", Class: ClassBulkRead, Automatic: true},
	{Code: OpAddWatch, Name: "addWatch", Abbrev: "ADDW", Group: "watch", Class: ClassRead, Path: PathFirst},
	{Code: OpWhoAmI, Name: "whoAmI", Abbrev: "HOMI", Group: "whoAmI", Class: ClassRead},
	{Code: OpListPage, Name: "listPage", Group: "children", Class: ClassBulkRead, Path: PathFirst},
}

// NumOps is the number of operations in the table. OpCode.Index is below it.
const NumOps = len(ops)

const (
	lowestOp  = OpSetLimit
	highestOp = OpListPage
)

// byCode leads from an op code to its row. Other numbers lead to unknownOp, which has no name and
// the index of OpError.
var byCode = func() (rows [highestOp - lowestOp + 1]*OpInfo) {
	for i := range ops {
		ops[i].index = i
		rows[ops[i].Code-lowestOp] = &ops[i]
	}
	unknownOp.index = rows[OpError-lowestOp].index
	for i := range rows {
		rows[i] = cmp.Or(rows[i], &unknownOp)
	}
	return rows
}()

var unknownOp OpInfo

// Info returns the row of the operation, which must not be changed. The row of an unknown number
// has no name and ClassNone.
func (o OpCode) Info() *OpInfo {
	if o < lowestOp || o > highestOp {
		return &unknownOp
	}
	return byCode[o-lowestOp]
}

// Index returns the index of the operation in the table, from 0 to NumOps-1, for arrays with an
// element per operation. Unknown numbers have that of OpError.
func (o OpCode) Index() int { return o.Info().index }

// Ops returns the rows of the table, in the order of their numbers.
func Ops() iter.Seq[*OpInfo] {
	return func(yield func(*OpInfo) bool) {
		for i := range ops {
			if !yield(&ops[i]) {
				return
			}
		}
	}
}

// String returns ZooKeeper's name of the op, or its number.
func (o OpCode) String() string {
	if name := o.Info().Name; name != "" {
		return name
	}
	return "op(" + strconv.Itoa(int(o)) + ")"
}
