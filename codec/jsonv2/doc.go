//go:build !goexperiment.jsonv2

// Package jsonv2 is empty without GOEXPERIMENT=jsonv2.
package jsonv2
