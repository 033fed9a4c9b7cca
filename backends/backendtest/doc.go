// Package backendtest is the conformance suite that every backend must pass, and the test
// doubles for tests of the engine.
//
// A test of a backend hands [Run] a [Store], which is the harness of a real store:
//
//	func TestConformance(t *testing.T) {
//		backendtest.Run(t, func(t *testing.T) backendtest.Store { return newHarness(t) })
//	}
//
// The harness plays the IPAM plugin: it allocates and frees addresses as the plugin's ADD and
// DEL do, or it calls the plugin itself. It should use the real store. A fake does a
// compare-and-swap the way its author believes the store does, and the suite exists to test
// that belief.
//
// The numbers in comments on checks refer to the promises in docs/design.md.
//
// [Memory] is a store in memory that passes the suite. [Pods] is a cluster that tests can
// change. [Journal] is a journal in memory. [Warrants] makes warrants in the engine's only way:
// by confirmation.
package backendtest
