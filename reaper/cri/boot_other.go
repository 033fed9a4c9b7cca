//go:build !linux

package cri

const bootFile = ""

// bootIn returns no ID: nodes run Linux.
func bootIn(string) string { return "" }
