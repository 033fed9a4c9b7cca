// Package census says who lives: which pods, nodes, virtual machines and StatefulSets a cluster
// has, and which sandboxes a node has. A Census is read after the allocations were listed, and
// answers questions about them. It decides nothing.
package census
