// Package report is what a run says, as a value: the outcome of each allocation, what is leaked,
// how full pools and networks are, and what is made from that, such as an explanation. It is
// made once, and package print has its formats.
package report
