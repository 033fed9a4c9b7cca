// Package ipam describes what stores hold: allocations with their owners, in pools, and the
// networks that hand them out. It has the contract of a store (Backend), and the permission to
// release one allocation (Warrant).
//
// Read allocation.go and backend.go first.
package ipam
