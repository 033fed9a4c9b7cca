// Package reaper finds the addresses that IPAM stores hold for pods that no
// longer exist, and releases them.
//
// If in doubt, it keeps the address. The zero value of every enum in this
// package means that nothing is known and nothing is released.
//
// # Three values
//
// A release goes through three values. Each is made in one place only:
//
//	Allocation  Backend.List yields it: a store holds this address
//	Orphan      MakePlan makes it: a complete, later Census has no owner for it,
//	            and its grace period is over
//	Warrant     Confirmer.Confirm makes it: a second look just now gave the same
//	            result
//
// A Backend releases an Allocation only by a valid Warrant. So an address that is
// merely suspected cannot be released by mistake. A dry run ends at the Plan and
// never has a Warrant.
//
// # Reading order
//
// The values that come in: allocation.go, pool.go, backend.go (the contract of a
// store), inventory.go, cluster.go (the contract of a cluster), census.go, ledger.go.
//
// The decisions, all of them pure: facts.go, known.go, rules.go (the table), rulesowned.go,
// rulesnodes.go, rulesheld.go, rulesdue.go (its rules, in this order), ending.go,
// replacement.go, judge.go, groups.go, protections.go, plan.go, limits.go.
//
// The run: run.go is the whole way, from the lock to the report. Its steps are in
// remember.go, confirm.go, warrant.go, release.go, record.go and journal.go.
//
// Two other ways use the same parts. restore.go puts back what a run released.
// inspect.go decides on files in place of stores and a cluster.
//
// The results: report.go, counts.go, restorereport.go.
package reaper
