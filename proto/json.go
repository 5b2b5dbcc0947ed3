package proto

// ACLJSON is an entry of an ACL in JSON.
type ACLJSON struct {
	Scheme string `json:"scheme"`
	ID     string `json:"id"`
	Perms  string `json:"perms"` // letters of cdrwa
}

// ACLToJSON returns the entries of a list. The result is not nil.
func ACLToJSON(acl []ACL) []ACLJSON {
	list := make([]ACLJSON, len(acl))
	for i, a := range acl {
		list[i] = ACLJSON{a.ID.Scheme, a.ID.ID, a.Perms.Letters()}
	}
	return list
}

// ACLFromJSON returns the list that the entries describe, nil for none.
func ACLFromJSON(list []ACLJSON) (acl []ACL, err error) {
	for _, e := range list {
		perms, err := ParsePerms(e.Perms)
		if err != nil {
			return nil, err
		}
		acl = append(acl, ACL{perms, ID{e.Scheme, e.ID}})
	}
	return acl, nil
}

// StatJSON is a Stat in JSON.
type StatJSON struct {
	Czxid          string `json:"czxid"`
	Mzxid          string `json:"mzxid"`
	Ctime          int64  `json:"ctime"` // Unix milliseconds
	Mtime          int64  `json:"mtime"`
	Version        int32  `json:"version"`
	Cversion       int32  `json:"cversion"`
	Aversion       int32  `json:"aversion"`
	EphemeralOwner string `json:"ephemeralOwner"` // "0x0": none
	DataLength     int32  `json:"dataLength"`
	NumChildren    int32  `json:"numChildren"`
	Pzxid          string `json:"pzxid"`
}

// JSON returns s as gozkd writes it in JSON, except in REST v1.
func (s *Stat) JSON() StatJSON {
	return StatJSON{
		Czxid: s.Czxid.String(), Mzxid: s.Mzxid.String(), Ctime: s.CtimeMs, Mtime: s.MtimeMs,
		Version: s.Version, Cversion: s.Cversion, Aversion: s.Aversion, EphemeralOwner: s.EphemeralOwner.String(),
		DataLength: s.DataLength, NumChildren: s.NumChildren, Pzxid: s.Pzxid.String(),
	}
}
