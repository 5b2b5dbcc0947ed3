package group

import (
	"time"

	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/cache"
	"github.com/gozkd/gozkd/recipes/internal/znodepath"
)

// View is a cache of a Group's members, and has the methods of cache.Tree. A member that lost
// its session and joined again is Removed and Added. Safe for concurrent use.
type View struct {
	*cache.Tree
	group *Group
}

// View returns a View of the group, which does nothing before Start. The process need not be a
// member.
func (g *Group) View() *View { return &View{cache.NewChildren(g.client, g.path), g} }

// Members returns the members in the order of their creation. Their payloads must not be modified.
func (v *View) Members() []Member {
	var members []Member
	for _, z := range v.All() {
		if v.group.isMember(znodepath.Base(z.Path)) {
			members = append(members, v.group.member(recipes.Contender{
				Path: z.Path, Data: z.Data, Session: int64(z.Stat.EphemeralOwner), Since: time.UnixMilli(z.Stat.CtimeMs), Zxid: int64(z.Stat.Czxid),
			}))
		}
	}
	return sortByAge(members)
}
