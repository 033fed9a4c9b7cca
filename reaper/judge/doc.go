// Package judge decides what becomes of each allocation. All of it is pure: the same allocations,
// census, ledger, policy and time give the same decisions and the same plan.
//
// Read case.go: all that a rule may ask about one allocation. facts.go has what all cases have in
// common. Then ruling.go and the tables, rules.go for pods and rulesruntime.go for a node, with their
// match functions in rulesowned.go, rulesnodes.go and rulesdue.go. judge.go asks them. protections.go
// and plan.go are the steps after the rules, and secondlook.go asks again before a write.
package judge
