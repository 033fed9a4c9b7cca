// Package cnstest is a fake of Azure CNS for tests: the part that hands out the addresses of
// a node, with its quirks. It is written from what the real one answers; the folder testdata
// has such answers, and a test compares.
//
// The quirks are these:
//
//   - a request that fails has the status 200, and the return code is nested in the answer;
//   - the answer to a failed release is written twice, as two JSON objects;
//   - the release of a container that CNS does not know succeeds;
//   - a release frees all addresses of the container, whatever addresses and pod it names;
//   - a container that has addresses gets the same ones again, whatever it asks for;
//   - after a restart, all addresses changed their state just now.
package cnstest
