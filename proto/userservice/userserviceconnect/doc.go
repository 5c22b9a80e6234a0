// Package userserviceconnect is the user service for connect-go: what its generator makes of the .proto file.
package userserviceconnect
