// Package reaper finds the addresses that IPAM stores hold for pods that no
// longer exist, and gives them back.
//
// The values form a ladder, and each rung is made in one place only:
//
//	Allocation  a Backend listed it
//	Orphan       Judge found no owner for it in a complete, later Census
//	Warrant      Confirm looked again just now: the owner is definitely gone
//
// A Backend releases nothing without a valid Warrant, and nothing else makes
// one, so an address that was merely suspected cannot be deleted by mistake. A
// dry run stops at the Plan and never holds a Warrant.
//
// The rule above all others: uncertainty keeps. The zero value of every enum
// in this package means that nothing is known and nothing is released.
package reaper
