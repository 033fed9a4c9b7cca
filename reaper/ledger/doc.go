// Package ledger is the memory from run to run: a value (Ledger), its stored form (Encode and
// Decode), and the contract of its store (Store).
package ledger
