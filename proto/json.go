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
