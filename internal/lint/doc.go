// Package lint holds the rules of this module that a compiler can't check, as a test over the syntax trees of every Go
// file: nothing that one stack does may reach another through the process they share, and no run may depend on a port,
// a clock or the number of iterations. Generated files and testdata folders are exempt; testdata/outsider, which shows
// how to write a stack elsewhere, is not.
//
// Each rule has a file in testdata that it must report. Names are resolved through a file's imports, not by type: an
// alias of a package is seen through, a local variable that shadows a package is taken for the package.
package lint
