package census

import (
	"iter"
	"slices"
	"strings"
)

// MayBe returns the nodes that the name of another node may stand for: those that have it as one of
// their other names, and those for which one name is the other with a domain behind it. It returns none if
// a node has exactly that name: then it stands for that node.
//
// Machines may share such a name. So it is a reason to wait for these nodes, and proves nothing.
func (c Census) MayBe(name string) []string {
	if name == "" || len(name) > maxName || c.HasNode(name) {
		return nil
	}
	name = strings.ToLower(name)
	nodes := slices.Concat(c.called[name], c.called[name+"."])
	for host := range hosts(name) {
		nodes = append(nodes, c.called[host]...)
	}
	slices.Sort(nodes)
	return slices.Compact(nodes)
}

// maxName is the longest name of a DNS subdomain, and so of a node.
const maxName = 253

// called returns the names of nodes by what they are called: by each of their names, and by each
// without a domain and with a dot behind it.
func called(nodes []Node) map[string][]string {
	all := make(map[string][]string, len(nodes))
	for _, n := range nodes {
		for _, name := range append([]string{n.Name}, n.OtherNames...) {
			if len(name) > maxName {
				continue
			}
			name = strings.ToLower(name)
			all[name] = append(all[name], n.Name)
			for host := range hosts(name) {
				all[host+"."] = append(all[host+"."], n.Name)
			}
		}
	}
	return all
}

// hosts yields the name without its last label, without its last two labels, and so on.
func hosts(name string) iter.Seq[string] {
	return func(yield func(string) bool) {
		end := strings.LastIndexByte(name, '.')
		for end > 0 && yield(name[:end]) {
			end = strings.LastIndexByte(name[:end], '.')
		}
	}
}
