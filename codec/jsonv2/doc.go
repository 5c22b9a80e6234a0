//go:build !go1.27 || !goexperiment.jsonv2

// Package jsonv2 is empty in builds without encoding/json/v2: those of Go 1.26, and those of a later release with
// GOEXPERIMENT=nojsonv2.
package jsonv2
