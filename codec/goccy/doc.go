//go:build !go1.26 || go1.27

// Package goccy is empty in builds with other Go releases than 1.26.
package goccy
