// Package cnstest is a fake Azure CNS for tests: the part that hands out the addresses of a
// node, with its quirks. It follows the answers of the real one. The folder testdata has such
// answers, and a test compares them.
//
// The quirks are:
//
//   - a failed request has the status 200, and its return code is nested in the answer;
//   - the answer to a failed release is written twice, as two JSON objects;
//   - the release of a container that CNS does not know succeeds;
//   - a release frees all addresses of the container, regardless of the addresses and pod it
//     names;
//   - a container that has addresses gets the same ones again, regardless of what it asks for;
//   - after a restart, all addresses seem to have changed their state just now.
package cnstest
