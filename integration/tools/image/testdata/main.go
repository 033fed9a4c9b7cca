// Command testdata is the program of the tests' images.
package main

func main() {}
