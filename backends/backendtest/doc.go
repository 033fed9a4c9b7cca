// Package backendtest is the conformance suite that every backend passes, ours
// or not, and what tests of the engine run on.
//
// A backend is tested by handing [Run] a [Store], the harness of a real one:
//
//	func TestConformance(t *testing.T) {
//		backendtest.Run(t, func(t *testing.T) backendtest.Store { return newHarness(t) })
//	}
//
// The harness plays the IPAM plugin: it reserves and frees addresses as the
// plugin's ADD and DEL do, or calls the plugin itself. It should rest on the
// real store. Fakes decide a compare-and-swap the way their author believes it
// to be, and that belief is what the suite is there to test.
//
// The numbers in the comments of checks are those of the promises in
// docs/design.md.
//
// [Memory] is a store in memory that passes, [Pods] a cluster that tests change
// at will, and [Warrants] the way to a warrant, which is the engine's own:
// nothing but a confirmation makes one.
package backendtest
