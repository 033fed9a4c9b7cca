// Package reaper is the run: it finds the addresses that IPAM stores hold for pods that no
// longer exist, and releases them.
//
// If in doubt, it keeps the address. The zero value of every enum below this package means that
// nothing is known and nothing is released.
//
// # Three values
//
// A release goes through three values. Each is made in one place only:
//
//	ipam.Allocation  Backend.List yields it: a store holds this address
//	judge.Orphan     a Plan makes it: a complete, later Census has no owner for it,
//	                 and its grace period is over
//	ipam.Warrant     Confirmer.Confirm makes it: a second look just now gave the same
//	                 result
//
// A Backend releases an Allocation only with a valid Warrant. So an address that is
// merely suspected cannot be released by mistake. A dry run ends at the Plan and
// never has a Warrant.
//
// # Reading order
//
// First the values that come in: packages ipam (what stores hold, and the contract of a
// backend), census (who lives), ledger (the memory from run to run) and journal. Then package
// judge, which decides and is pure. Then package report, which is what a run says.
//
// The run itself is here. options.go says what it is given, and run.go is the whole run, from the
// lock to the report. A round takes stock (stock.go), has it judged, and carries out what is due, in
// the order of the files checks.go, memory.go, record.go, confirm.go and release.go. An attempt, in
// release.go, is all that it did about one allocation. The report is made once, at the end, with what
// messages.go gathered on the way. carry.go is what a release has in common with a restore.
//
// guard.go is what may stop the releases after the plan, and endpoints.go reads what stores have beside their
// allocations. names.go looks up the names of a selection, and compare.go compares with the installed policy.
// findings.go looks, after the releases, for what is wrong with the addresses that pods show.
//
// restore.go puts back what a run released, with the same parts: restoreowners.go says what must not go back, and
// restorewrite.go writes the rest. files.go is what a dry run on dumped files adds.
package reaper
