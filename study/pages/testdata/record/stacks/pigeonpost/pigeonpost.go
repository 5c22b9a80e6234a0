// Package pigeonpost serves and calls the create-user API by birds. They fly.
package pigeonpost

// VT has faster birds.
func VT() {}

// Slow has slower ones.
func Slow() {}
